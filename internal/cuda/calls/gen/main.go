// Command gen writes the generated C headers of the stand-in libraries from the tables of package calls. It is run by
// go generate in the folder of package standin and writes there.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/calls"
)

func main() {
	files := map[string]string{
		"gen_wire.h":                wire(),
		"gen_errors.h":              errorTable(),
		"gen_properties.h":          properties(),
		"gen_forward_runtime.h":     forwards(calls.Runtime, calls.Accepted),
		"gen_forward_driver.h":      forwards(calls.Driver, calls.AcceptedDriver),
		"gen_unsupported_runtime.h": unsupported(calls.UnsupportedCalls),
		"gen_unsupported_driver.h":  unsupported(calls.UnsupportedDriver),
	}
	files["gen_procedures.h"] = procedures(files["gen_forward_driver.h"])
	for name, text := range files {
		text = "// Code generated from the tables of package calls by calls/gen; DO NOT EDIT.\n\n" + text
		if err := os.WriteFile(filepath.Join("src", name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// wire writes the numbers both sides of the socket share.
func wire() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#define FP_VERSION %d\n#define FP_ENV %q\n#define FP_MARKER %q\n", calls.Version, calls.Env, calls.Marker)
	fmt.Fprintf(&b, "#define FP_SOCKET_PREFIX %q\n#define FP_FLUSH_SIGNAL %d\n", calls.SocketPrefix, calls.FlushSignal)
	fmt.Fprintf(&b, "#define FP_FORKED %d\n#define FP_NOT_MAPPED %d\n", calls.ReasonForked, calls.ReasonNotMapped)
	fmt.Fprintf(&b, "#define FP_ATTRIBUTES %d\n", calls.NumAttributes)
	fmt.Fprintf(&b, "#define FP_FRAMES %d\n#define FP_SCRIPT 0x%xu\n#define FP_MAX_SCRIPT %d\n#define FP_PYTHON_ENV %q\n",
		calls.Frames, uint32(calls.Script), calls.MaxScript, calls.PythonEnv)
	fmt.Fprintf(&b, "#define FP_ORIGIN_FRAMES %d\n#define FP_OF_GRAPH_LAUNCH 0x%xull\n", calls.OriginFrames, uint64(calls.OfGraphLaunch))
	fmt.Fprintf(&b, "#define FP_LAUNCH_COOPERATIVE %d\n#define FP_LAUNCH_CONFIGURED %d\n#define FP_LAUNCH_PROGRAMMATIC %d\n#define FP_LAUNCH_CLUSTER %d\n",
		calls.LaunchCooperative, calls.LaunchConfigured, calls.LaunchProgrammatic, calls.LaunchCluster)
	fmt.Fprintf(&b, "#define FP_KIND_DEVICE %d\n#define FP_KIND_MANAGED %d\n#define FP_KIND_PINNED %d\n#define FP_KIND_ANY %d\n#define FP_KIND_ARRAY %d\n#define FP_KIND_OBJECT %d\n",
		calls.KindDevice, calls.KindManaged, calls.KindPinned, calls.KindAny, calls.KindArray, calls.KindObject)
	fmt.Fprintf(&b, "#define FP_MAIL_WRITTEN %d\n#define FP_MAIL_DONE %d\n#define FP_MAIL_CLOSED %d\n#define FP_MAIL_HEAD %d\n#define FP_MAIL_RING %d\n#define FP_MAIL_POOL %d\n",
		calls.MailWritten, calls.MailDone, calls.MailClosed, calls.MailHead, calls.MailRing, calls.MailPool)
	fmt.Fprintf(&b, "#define FP_THREADS %d\n#define FP_THREAD_OF_STREAM 0x%xu\n", calls.Threads, calls.ThreadOfStream)
	for i, name := range []string{"DEFAULT", "CURRENT", "CHOOSE", "CREATE", "DESTROY", "TRIM", "GET", "SET", "ACCESS", "GRANT"} {
		fmt.Fprintf(&b, "#define FP_POOL_%s %d\n", name, i)
	}
	for i, name := range []string{"GET_MEMORY", "GET_EVENT", "CLOSE_MEMORY", "OPEN_MEMORY", "OPEN_EVENT"} {
		fmt.Fprintf(&b, "#define FP_IPC_%s %d\n", name, i)
	}
	for i, name := range []string{"WORK", "BEGIN", "TRIGGER", "TRIGGER_AT_START"} {
		fmt.Fprintf(&b, "#define FP_RECORD_%s %d\n", name, i)
	}
	for i, name := range []string{"DEVICE", "HOST", "MANAGED"} {
		fmt.Fprintf(&b, "#define FP_POOL_OF_%s %d\n", name, i)
	}
	fmt.Fprintf(&b, "#define FP_VALUE_WAIT %d\n", calls.ValueWait)
	fmt.Fprintf(&b, "#define FP_OF_BATCH %d\n#define FP_COPY_DURING_CALL %d\n#define FP_COPY_ANY_TIME %d\n", calls.OfBatch, calls.CopyDuringCall, calls.CopyAnyTime)
	fmt.Fprintf(&b, "#define FP_FUNCTION_PUT %d\n#define FP_FUNCTION_BEGINS %d\n#define FP_FUNCTION_ENDS %d\n", calls.FunctionPut, calls.FunctionBegins, calls.FunctionEnds)
	fmt.Fprintf(&b, "#define FP_UNAWAITED 0x%xu\n", uint32(calls.Unawaited))
	fmt.Fprintf(&b, "#define FP_TEXTURE %d\n#define FP_OBJECT %d\n", calls.TextureBytes, calls.ObjectBytes)
	fmt.Fprintf(&b, "#define FP_STREAM_LEGACY %d\n#define FP_STREAM_PER_THREAD %d\n#define FP_OF_GRAPH %d\n\nenum {\n",
		calls.StreamLegacy, calls.StreamPerThread, calls.OfGraph)
	for op, s := range calls.Specs {
		fmt.Fprintf(&b, "  FP_%s = %d, // %s\n", s.Name, op, s.Doc)
	}
	b.WriteString("};\n\n// fp_placed says which requests tell where in the program their call is.\nstatic int fp_placed(u32 op) {\n  return ")
	for i, op := range calls.Placed {
		if i > 0 {
			b.WriteString(" || ")
		}
		fmt.Fprintf(&b, "op == FP_%s", calls.Specs[op].Name)
	}
	return b.String() + ";\n}\n"
}

func errorTable() string {
	var b strings.Builder
	b.WriteString("static const struct fp_error {\n  u32 code;\n  const char *name, *driver, *text;\n} fp_errors[] = {\n")
	for _, e := range calls.Errors {
		fmt.Fprintf(&b, "    {%d, %q, %q, %q},\n", e.Code, e.Name, e.Driver, e.Text)
	}
	return b.String() + "};\n"
}

func properties() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#define FP_PROPERTIES_11 %d\n#define FP_PROPERTIES_12 %d\n#define FP_PROPERTIES_13 %d\n\n",
		calls.PropertiesSize11, calls.PropertiesSize12, calls.PropertiesSize13)
	b.WriteString("static const struct fp_property {\n  short at12, at13, size, attribute;\n} fp_properties[] = {\n")
	for _, p := range calls.Properties {
		fmt.Fprintf(&b, "    {%d, %d, %d, %d}, // %s\n", p.At12, p.At13, p.Size, p.Attribute, p.Name)
	}
	return b.String() + "};\n"
}

func unsupported(names []string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "EXPORT int %s(void) { return finish(fp_unsupported(%q)); }\n", name, name)
	}
	return b.String()
}

// procedures writes the table of the driver API's functions, for cuGetProcAddress: those of the generated header and of
// cuda.c itself, macros expanded.
func procedures(forwards string) string {
	source, err := os.ReadFile(filepath.Join("src", "cuda.c"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	names := map[string]bool{"cuGetProcAddress": true, "cuGetProcAddress_v2": true}
	exported := regexp.MustCompile(`(?m)^EXPORT int (cu\w+)\(`)
	for _, m := range exported.FindAllStringSubmatch(forwards+string(source), -1) {
		names[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^(LAUNCH|LAUNCH_COOPERATIVE|COPY)\((cu\w+)`).FindAllStringSubmatch(string(source), -1) {
		suffixes := []string{""}
		if m[1] == "COPY" {
			suffixes = []string{"_v2", "_v2_ptds", "Async_v2", "Async_v2_ptsz"}
		}
		for _, s := range suffixes {
			names[m[2]+s] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^FILL\((\d+)`).FindAllStringSubmatch(string(source), -1) {
		for _, s := range []string{"D%s_v2", "D%s_v2_ptds", "D%sAsync", "D%sAsync_ptsz", "D2D%s_v2", "D2D%s_v2_ptds", "D2D%sAsync", "D2D%sAsync_ptsz"} {
			names["cuMemset"+fmt.Sprintf(s, m[1])] = true
		}
	}
	for _, file := range []string{"graph_calls.h", "cuda_graph.h", "cuda_array.h", "cuda_value.h", "cuda_virtual.h", "batch.h", "hints.h", "pool.h", "cuda_copy.h"} {
		text, err := os.ReadFile(filepath.Join("src", file))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, n := range expanded(string(text)) {
			names[n] = true
		}
	}
	var b strings.Builder
	for _, late := range []string{"cuGetProcAddress_v2(const char *name, void **f, int version, u64 flags, int *status)",
		"cuGetProcAddress(const char *name, void **f, int version, u64 flags)"} {
		fmt.Fprintf(&b, "EXPORT int %s;\n", late)
	}
	b.WriteString("\nstatic const struct {\n  const char *name;\n  void *address;\n} procedures[] = {\n")
	for _, n := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "    {%q, (void *)%s},\n", n, n)
	}
	return b.String() + "};\n"
}

// expanded lists the functions that a header of the driver API exports, API(name) and macros expanded: one level, whose uses
// begin a line.
func expanded(text string) []string {
	text = strings.ReplaceAll(text, "\\\n", "")
	exported := regexp.MustCompile(`EXPORT int (?:API\(([\w#]+)\)|(cu[\w#]+))\(`)
	var names []string
	add := func(body string, fill func(string) string) {
		for _, m := range exported.FindAllStringSubmatch(body, -1) {
			name := fill(m[2])
			if m[1] != "" {
				name = "cu" + fill(m[1])
			}
			names = append(names, name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+)\(([\w, ]*)\) (.*)$`).FindAllStringSubmatch(text, -1) {
		formals := strings.Split(m[2], ",")
		for _, use := range regexp.MustCompile(`(?m)^`+m[1]+`\((.*)\)$`).FindAllStringSubmatch(text, -1) {
			actual := map[string]string{}
			for i, a := range strings.Split(use[1], ",") {
				if i < len(formals) {
					actual[strings.TrimSpace(formals[i])] = strings.TrimSpace(a)
				}
			}
			add(m[3], func(name string) string {
				parts := strings.Split(name, "##")
				for i, part := range parts {
					if a, ok := actual[part]; ok {
						parts[i] = a
					}
				}
				return strings.Join(parts, "")
			})
		}
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#define") {
			add(line, func(name string) string { return name })
		}
	}
	return names
}

// param is one parameter of a call in the short notation of calls.Forward.
type param struct {
	kind, name string
	out, skip  bool
}

var cTypes = map[string]string{"stream": "void *", "handle": "void *", "size": "size_t ", "u32": "unsigned ", "i32": "int ", "u64": "u64 "}

func params(list string) []param {
	var ps []param
	if list == "" {
		return nil
	}
	for _, item := range strings.Split(list, ",") {
		kind, name, ok := strings.Cut(strings.TrimSpace(item), " ")
		p := param{kind: kind, name: name}
		p.kind, p.out = strings.CutPrefix(p.kind, "out-")
		p.kind, p.skip = strings.CutPrefix(p.kind, "skip-")
		if _, known := cTypes[p.kind]; !known || !ok {
			panic("BUG: parameter " + item)
		}
		ps = append(ps, p)
	}
	return ps
}

func (p param) declaration() string {
	if p.out {
		return cTypes[p.kind] + "*" + p.name
	}
	return cTypes[p.kind] + p.name
}

func forwards(rows []calls.Forward, accepted []string) string {
	var b strings.Builder
	for _, f := range rows {
		forward(&b, f, f.Name, "0")
		if f.PTSZ {
			forward(&b, f, f.Name+"_ptsz", "1")
		}
	}
	for _, a := range accepted {
		name, list, _ := strings.Cut(a, ": ")
		accept(&b, name, params(list))
	}
	return b.String()
}

// forward writes one call.
func forward(b *strings.Builder, f calls.Forward, name, perThread string) {
	ps := params(f.Params)
	fmt.Fprintf(b, "EXPORT int %s(%s) {\n", name, signature(ps))
	values := map[string]string{}
	var order, outs []string
	var results []param
	for _, p := range ps {
		switch {
		case p.out:
			results = append(results, p)
			if !p.skip {
				outs = append(outs, "!"+p.name)
			}
		case p.skip:
			fmt.Fprintf(b, "  (void)%s;\n", p.name)
		case p.kind == "stream":
			values[p.name] = fmt.Sprintf("stream_of(%s, %s)", p.name, perThread)
			order = append(order, p.name)
		default:
			values[p.name] = "(u64)" + p.name
			order = append(order, p.name)
		}
	}
	args := arguments(f, values, order)
	if want := calls.Specs[f.Op].Args; len(args) != want {
		panic(fmt.Sprintf("BUG: %s passes %d arguments to %s, which takes %d", name, len(args), calls.Specs[f.Op].Name, want))
	}
	if len(outs) > 0 {
		fmt.Fprintf(b, "  if (%s) return finish(fpInvalidValue);\n", strings.Join(outs, " || "))
	}
	if len(results) > 0 {
		fmt.Fprintf(b, "  u64 r[%d] = {0};\n", len(results))
	}
	argv, rv := "NULL", "NULL"
	if len(args) > 0 {
		argv = "(const u64[]){" + strings.Join(args, ", ") + "}"
	}
	if len(results) > 0 {
		rv = "r"
	}
	fmt.Fprintf(b, "  int error = fp_request(FP_%s, %s, %d, %s, %d);\n", calls.Specs[f.Op].Name, argv, len(args), rv, len(results))
	for i, p := range results {
		if !p.skip {
			fmt.Fprintf(b, "  if (!error) *%s = (%s)r[%d];\n", p.name, strings.TrimSpace(cTypes[p.kind]), i)
		}
	}
	if f.Sync {
		b.WriteString("  fp_print();\n")
	}
	b.WriteString("  return finish(error);\n}\n")
}

// arguments returns the C expressions of the request's arguments.
func arguments(f calls.Forward, values map[string]string, order []string) []string {
	var args []string
	names := order
	if f.Args == "-" {
		return nil
	}
	if f.Args != "" {
		names = strings.Fields(f.Args)
	}
	for _, n := range names {
		if v, ok := values[n]; ok {
			args = append(args, v)
		} else {
			args = append(args, n)
		}
	}
	return args
}

// signature writes a parameter list; results that are skipped are no parameters.
func signature(ps []param) string {
	var decl []string
	for _, p := range ps {
		if !p.out || !p.skip {
			decl = append(decl, p.declaration())
		}
	}
	if len(decl) == 0 {
		return "void"
	}
	return strings.Join(decl, ", ")
}

func accept(b *strings.Builder, name string, ps []param) {
	fmt.Fprintf(b, "EXPORT int %s(%s) {\n", name, signature(ps))
	for _, p := range ps {
		fmt.Fprintf(b, "  (void)%s;\n", p.name)
	}
	b.WriteString("  return finish(present());\n}\n")
}
