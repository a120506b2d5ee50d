package session

import (
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// misuses says of each kind of failed call how bad it is and what to do about it.
var misuses = map[cuda.Misuse]struct {
	severity detect.Severity
	fix      string
}{
	cuda.DoubleFree:     {detect.Error, "free each allocation once; set the pointer to NULL where it is freed"},
	cuda.InvalidFree:    {detect.Error, "free the address that the allocating call returned, with the call that belongs to it: cudaFree for cudaMalloc, cudaFreeHost for cudaHostAlloc"},
	cuda.FreedMemory:    {detect.Error, "free the memory after the last call that uses it"},
	cuda.CallBounds:     {detect.Error, "bound the size by that of the allocation; sizes are in bytes"},
	cuda.InvalidPointer: {detect.Error, "pass an address of an allocation, and check the error of the allocation"},
	cuda.WrongDirection: {detect.Error, "name the direction from the source to the destination, or use cudaMemcpyDefault"},
	cuda.InvalidHandle:  {detect.Error, "destroy streams and events after the last call that uses them"},
	cuda.BadTensorMap:   {detect.Error, "follow the rules of cuTensorMapEncodeTiled: sizes, strides in bytes, box and swizzle"},
	cuda.LaunchRefused:  {detect.Warning, "launch a shape that the device can run, and check the error of every launch"},
	cuda.Leak:           {detect.Warning, "call cudaFree when nothing uses the memory any more (cudaFreeHost for cudaHostAlloc and cudaMallocHost, cudaFreeArray for arrays)"},
	cuda.ErrorIgnored:   {detect.Warning, "check the value that the call returns, or cudaGetLastError() after it"},
}

// failures makes findings of the calls of the program that returned an error.
func (r *once) failures() {
	failed := r.program != nil && r.program.Exit != 0 // an exit code shows that the program saw an error
	for _, f := range r.device.Failures() {
		if f.Kind == cuda.Leak && (r.program == nil || r.program.Signal != "") {
			continue // it was stopped before it could free anything
		}
		unseen := f.Unseen > 0 && !failed
		if f.Kind == cuda.ErrorIgnored && !unseen {
			continue
		}
		out := failure(&f)
		if f.Kind == cuda.LaunchRefused && unseen {
			r.unseenRefusal(&f, &out)
		}
		r.findings = append(r.findings, out)
	}
}

// failure makes a finding of a call that returned an error.
func failure(f *cuda.Failure) report.Finding {
	k := misuses[f.Kind]
	out := report.Finding{Class: detect.API, Kind: detect.Kind(f.Kind), Severity: k.severity, Detector: engineName, Count: f.Count,
		Message: failureText(f), Fix: k.fix}
	out.Accesses = []report.Access{{Op: detect.Call, Host: f.Call, Doing: "returns " + f.Returned(), Frames: f.Frames}}
	if f.Kind == cuda.Leak {
		out.Accesses[0].Doing = "allocates it"
	}
	if f.Minor {
		out.Severity = detect.Warning
	}
	if f.Launch != nil {
		out.Kernel = f.Launch.Kernel
	}
	return out
}

// unseenRefusal judges a launch that did not take place while the program goes on as if it had. A launch <<<...>>> returns no error, so that
// the program cannot have seen it; what another call returned it may have looked at.
func (r *once) unseenRefusal(f *cuda.Failure, out *report.Finding) {
	if f.Configured {
		out.Message += "; the program never asks for the error, and goes on without what the kernel does"
		out.Severity = detect.Error
		return
	}
	const unseen = "whether the program looks at what the call returns cannot be seen from outside"
	out.Message += "; " + unseen
	name := "a kernel"
	if f.Launch != nil {
		name = "kernel " + report.ShortName(report.BareName(f.Launch.Kernel))
	}
	r.skip(name, "not run: its launch is refused with "+f.Returned()+", and "+unseen)
}

// failureText says what is wrong with a call.
func failureText(f *cuda.Failure) string {
	switch {
	case f.Launch != nil && f.Kind == cuda.LaunchRefused:
		return refusal(f.Launch, f.Returned(), f.Msg)
	case f.Kind == cuda.ErrorIgnored:
		text := "the call returns " + f.Returned()
		if f.Msg != "" {
			text += " (" + strings.TrimSuffix(f.Msg, ".") + ")"
		}
		return text + ", and nothing that the program calls later asks for the error (cudaGetLastError, cudaPeekAtLastError, " +
			"cudaGetErrorString, cudaGetErrorName); what it returned cannot be seen from outside"
	case f.Kind == cuda.Leak:
		const end = "not freed when the program ends or calls cudaDeviceReset"
		if f.Count == 1 {
			return f.Msg + " is " + end
		}
		return fmt.Sprintf("%d allocations, %d bytes in all, are %s; the first is %s", f.Count, f.Bytes, end, f.Msg)
	case f.Msg == "":
		return "the call returns " + f.Returned()
	}
	return f.Msg
}

func refusal(l *cuda.LaunchReport, code, msg string) string {
	text := fmt.Sprintf("the launch with grid %s and block %s is refused with %s", l.Grid, l.Block, code)
	if msg != "" {
		text += ": " + strings.TrimSuffix(msg, ".")
	}
	return text
}
