package toolchain

import (
	"fmt"
	"strings"
)

// item is one argument of nvcc with its value.
type item struct {
	opt   string // short name, "-arch" for --gpu-architecture; "" for an input; an unknown option as written
	value string // value of an option that takes one, or the input
	raw   []string
}

// text returns the option as the caller wrote it.
func (it item) text() string { return strings.Join(it.raw, " ") }

// option is an option of nvcc, as far as arguments are distinguished by it. nvcc's own help page lists them.
type option struct {
	long  string
	short string
	takes bool // a value follows, after a blank or "="
}

// options contains every option that takes a value, so that a value is never mistaken for an option or an input, and
// those without a value that Wrap inspects.
var options = []option{
	{"--gpu-architecture", "-arch", true}, {"--gpu-code", "-code", true}, {"--generate-code", "-gencode", true},
	{"--cicc-options", "-Xcicc", true}, {"--Ofast-compile", "-Ofc", true}, {"--dopt", "-dopt", true},
	{"--cudart", "-cudart", true}, {"--cudadevrt", "-cudadevrt", true}, {"--options-file", "-optf", true},
	{"--compiler-options", "-Xcompiler", true}, {"--linker-options", "-Xlinker", true},
	{"--archive-options", "-Xarchive", true}, {"--ptxas-options", "-Xptxas", true}, {"--nvlink-options", "-Xnvlink", true},
	{"--nvprune-options", "-Xnvprune", true}, {"--tileiras-options", "-Xtileiras", true}, {"--cudafe-options", "-Xcudafe", true},
	{"--tile-preview", "-tile-preview", true}, {"--dependency-output", "-MF", true}, {"--dependency-target-name", "-MT", true},
	{"--output-file", "-o", true}, {"--pre-include", "-include", true}, {"--library", "-l", true},
	{"--define-macro", "-D", true}, {"--undefine-macro", "-U", true}, {"--include-path", "-I", true},
	{"--system-include", "-isystem", true}, {"--library-path", "-L", true}, {"--output-directory", "-odir", true},
	{"--compiler-bindir", "-ccbin", true}, {"--archiver-binary", "-arbin", true}, {"--libdevice-directory", "-ldir", true},
	{"--target-directory", "-target-dir", true}, {"--optimization-info", "-opt-info", true}, {"--optimize", "-O", true},
	{"--ftemplate-backtrace-limit", "-ftemplate-backtrace-limit", true}, {"--ftemplate-depth", "-ftemplate-depth", true},
	{"--x", "-x", true}, {"--std", "-std", true}, {"--stdlib", "-stdlib", true}, {"--machine", "-m", true},
	{"--apply-controls", "-apply-controls", true}, {"--static-global-template-stub", "-static-global-template-stub", true},
	{"--device-entity-has-hidden-visibility", "-device-entity-has-hidden-visibility", true}, {"--threads", "-t", true},
	{"--fmax-errors", "-fmax-errors", true}, {"--split-compile", "-split-compile", true},
	{"--split-compile-extended", "-split-compile-extended", true}, {"--fdevice-time-trace", "-fdevice-time-trace", true},
	{"--fdevice-time-trace-granularity", "-fdevice-time-trace-granularity", true}, {"--keep-dir", "-keep-dir", true},
	{"--time", "-time", true}, {"--run-args", "-run-args", true}, {"--input-drive-prefix", "-idp", true},
	{"--dependency-drive-prefix", "-ddp", true}, {"--drive-prefix", "-dp", true}, {"--relocatable-device-code", "-rdc", true},
	{"--entries", "-e", true}, {"--maxrregcount", "-maxrregcount", true}, {"--ftz", "-ftz", true},
	{"--prec-div", "-prec-div", true}, {"--prec-sqrt", "-prec-sqrt", true}, {"--fmad", "-fmad", true},
	{"--default-stream", "-default-stream", true}, {"--Werror", "-Werror", true}, {"--diag-error", "-diag-error", true},
	{"--diag-suppress", "-diag-suppress", true}, {"--diag-warn", "-diag-warn", true}, {"--host-linker-script", "-hls", true},
	{"--brief-diagnostics", "-brief-diag", true}, {"--jump-table-density", "-jtd", true},
	{"--device-stack-protector", "-device-stack-protector", true}, {"--compress-mode", "-compress-mode", true},
	{"--frandom-seed", "-frandom-seed", true}, {"--fdevice-sanitize", "-fdevice-sanitize", true},

	{"--device-debug", "-G", false}, {"--generate-line-info", "-lineinfo", false}, {"-line-info", "-lineinfo", false},
	{"--extra-device-vectorization", "-extra-device-vectorization", false}, {"--dlink-time-opt", "-dlto", false},
	{"--lto", "-lto", false}, {"--gen-opt-lto", "-gen-opt-lto", false}, {"--cubin", "-cubin", false},
	{"--optix-ir", "-optix-ir", false}, {"--ltoir", "-ltoir", false}, {"--tilebc", "-tilebc", false},
	{"--tilecubin", "-tilecubin", false}, {"--tilefatbin", "-tilefatbin", false}, {"--version", "-V", false},
	{"--help", "-h", false}, {"--list-gpu-arch", "-arch-ls", false}, {"--list-gpu-code", "-code-ls", false},
	{"--device-c", "-dc", false}, {"--device-link", "-dlink", false}, {"--ptx", "-ptx", false}, {"--lib", "-lib", false},
	{"--compile", "-c", false}, {"--shared", "-shared", false}, {"--fatbin", "-fatbin", false},
	{"--prec-all", "-prec-all", false}, {"--m64", "-m64", false},
	{"--instrument", "-instrument", true}, // Fencepost's own
}

// lookup finds an option by either name.
func lookup(name string) (option, bool) {
	for _, o := range options {
		if o.long == name || o.short == name {
			return o, true
		}
	}
	return option{}, false
}

// attached are the options whose value may follow without a blank, as in -O2 and -lm.
const attached = "DUILlOmt"

// maxFiles bounds the response files of one call, which may refer to each other.
const maxFiles = 256

// parseArgs splits the arguments into options with their values and inputs. A response file with an argument that Wrap
// inspects is replaced by its contents. Any other stays a file, because nvcc has rules of its own for quotes in it.
func parseArgs(args []string, read func(string) ([]byte, error)) ([]item, error) {
	p := argParser{read: read}
	return p.parse(args)
}

type argParser struct {
	read  func(string) ([]byte, error)
	files int // read so far
}

func (p *argParser) parse(args []string) ([]item, error) {
	var items []item
	for i := 0; i < len(args); i++ {
		it := item{raw: args[i : i+1]}
		a := args[i]
		o, known := lookup(a)
		name, value, eq := strings.Cut(a, "=")
		switch {
		case !strings.HasPrefix(a, "-") || a == "-":
			it.value = a
		case known && !o.takes:
			it.opt = o.short
		case known && i+1 < len(args):
			it.opt, it.value, it.raw = o.short, args[i+1], args[i:i+2]
			i++
		case known:
			return nil, &UsageError{fmt.Sprintf("option %s needs a value", a)}
		case eq && takesValue(name):
			o, _ := lookup(name)
			it.opt, it.value = o.short, value
		case strings.IndexByte(attached, a[1]) >= 0 && len(a) > 2:
			it.opt, it.value = a[:2], a[2:]
		default:
			it.opt = a
		}
		if it.opt == "-optf" && p.read != nil {
			more, err := p.responseFiles(it)
			if err != nil {
				return nil, err
			}
			items = append(items, more...)
			continue
		}
		items = append(items, it)
	}
	return items, nil
}

func takesValue(name string) bool {
	o, ok := lookup(name)
	return ok && o.takes
}

func (p *argParser) responseFiles(it item) ([]item, error) {
	var all []item
	matters := false
	for name := range strings.SplitSeq(it.value, ",") {
		if p.files++; p.files > maxFiles {
			return nil, &UsageError{fmt.Sprintf("more than %d response files (-optf): do they name each other?", maxFiles)}
		}
		text, err := p.read(name)
		if err != nil {
			return nil, err
		}
		items, err := p.parse(splitWords(string(text)))
		if err != nil {
			return nil, err
		}
		for _, m := range items {
			matters = matters || overruled(m)
		}
		all = append(all, items...)
	}
	if !matters {
		return []item{it}, nil
	}
	return all, nil
}

// overruled reports whether Wrap must not leave an argument unchanged.
func overruled(it item) bool {
	switch it.opt {
	case "-arch", "-code", "-gencode", "-lineinfo", "-Xcicc", "-Ofc", "-dopt", "-extra-device-vectorization", "-dlto", "-lto",
		"-gen-opt-lto", "-cudart", "-cudadevrt", "-G":
		return true
	case "-l":
		return it.value == "cudadevrt"
	case "":
		return strings.HasSuffix(it.value, "libcudart_static.a")
	}
	return makesNoPTX[it.opt] || informs[it.opt]
}

// splitWords splits the text of a response file or of NVCC_APPEND_FLAGS at blanks. Double quotes keep blanks together,
// and a backslash escapes a quote or a backslash.
func splitWords(s string) []string {
	var words []string
	var w strings.Builder
	inWord, quoted := false, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			w.WriteByte(s[i])
			inWord = true
		case c == '"':
			quoted = !quoted
			inWord = true
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			if inWord {
				words = append(words, w.String())
				w.Reset()
				inWord = false
			}
		default:
			w.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, w.String())
	}
	return words
}
