package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"fencepost.dev/fencepost/docs"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/nearest"
)

// configName is the file that sets flags for a folder and all below it.
const configName = "fencepost.toml"

// settings are the flags that a configuration may set, and what holds without one. The others are files of one run.
var settings = map[string]string{
	"annotate": "none", "baseline": "none", "color": "auto", "detector": "hb, and what gwcp predicts", "engine": "warp", "error-exitcode": "1",
	"fail-on": "error", "kernel": "all", "kernel-name": "all", "limit": "20", "max-findings": strconv.Itoa(detect.DefaultFindings), "model": "cuda",
	"skip-kernel": "none", "variable": "all", "skip-variable": "none", "blocks": "all", "threads": "all", "addresses": "all", "arch": "what the program was built for",
	"nvcc": "found as \"fencepost doctor\" tells", "schedule": both, "seed": "0", "seeds": "1", "suppress": "none", "timeout": "none",
}

// lists are the flags that take several values, separated by commas.
var lists = []string{"detector", "blocks", "threads", "addresses"}

// listed are the keys of a configuration that are no flags.
const (
	includeKey  = "include"        // folders, for the compiler
	compilerKey = "compiler-flags" // other flags of the compiler
	severityKey = "severity"       // a table: kind = "warning"
)

// config is what a configuration file says.
type config struct {
	file       string
	compiler   []string // flags of the compiler
	severities map[detect.Kind]detect.Severity
}

// origin is a value that was set, and by whom.
type origin struct{ value, by string }

const configLong = `
fencepost config
  prints the settings that apply in this folder, and where each comes from: the nearest fencepost.toml, in the working
  folder or above it. Flags override it. A key is a flag without its dashes (docs/config.md):

    detector = ["hb", "gwcp"]
    fail-on = "warning"
    suppress = "ci/fencepost.suppress"
    include = ["include"]

    [severity]
    same-value = "info"`

func configCommand() *command {
	var flags []*flag
	for _, f := range append(runFlags(), nvccFlag) {
		if _, ok := settings[f.name]; ok {
			flags = append(flags, f)
		}
	}
	return &command{name: "config", doc: "print the settings of fencepost.toml and the flags", long: configLong, flags: flags, run: runConfig}
}

// mostAligned bounds the width of the column of values: what is longer moves only its own line.
const mostAligned = 40

func runConfig(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) > 0 {
		return 0, usagef("config takes no arguments")
	}
	var names []string
	for name := range settings {
		names = append(names, name)
	}
	var rows [][3]string
	for _, name := range sorted(names) {
		at, ok := o.origins[name]
		if !ok {
			at = origin{settings[name], "default"}
		}
		rows = append(rows, [3]string{name, at.value, at.by})
	}
	if len(o.config.compiler) > 0 {
		rows = append(rows, [3]string{compilerKey, strings.Join(o.config.compiler, " "), o.config.file})
	}
	var kinds []string
	for kind := range o.config.severities {
		kinds = append(kinds, string(kind))
	}
	for _, kind := range sorted(kinds) {
		rows = append(rows, [3]string{severityKey, fmt.Sprintf("%s = %s", kind, o.config.severities[detect.Kind(kind)]), o.config.file})
	}
	wide := 0
	for _, r := range rows {
		if len(r[1]) <= mostAligned {
			wide = max(wide, len(r[1]))
		}
	}
	for _, r := range rows {
		fmt.Fprintf(e.stdout, "%-15s  %-*s  %s\n", r[0], wide, r[1], r[2])
	}
	return exitClean, nil
}

// findConfig gives the nearest configuration of a folder and those above it, "" if there is none.
func findConfig() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		name := filepath.Join(dir, configName)
		if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
			return name
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// configurable says that a command takes a setting: those that judge kernels take all that are their flags. Flags of the same
// name of other commands may mean something else.
func (c *command) configurable(name string) bool {
	return c.flag(name) != nil && (c.name == "config" || c.flag("fail-on") != nil || name == "nvcc" || name == "color" || name == "annotate")
}

// configure sets what the configuration says, before the flags are read. All keys are judged, whatever the command takes.
func configure(c *command, o *options) error {
	if !slices.ContainsFunc(c.flags, func(f *flag) bool { return c.configurable(f.name) }) {
		return nil
	}
	file := findConfig()
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	o.config.file = file
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, file); err == nil {
			o.config.file = rel
		}
	}
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			line, column := bad.Position()
			return usagef("%s:%d:%d: %s", o.config.file, line, column, strings.TrimPrefix(bad.Error(), "toml: "))
		}
		return usagef("%s: %v", o.config.file, err)
	}
	var keys []string
	for key := range doc {
		keys = append(keys, key)
	}
	for _, key := range sorted(keys) {
		at := keyPlace(o.config.file, string(text), key)
		if err := o.setting(c, key, doc[key], at); err != nil {
			return usagef("%s: %v", at, err)
		}
	}
	return nil
}

// configured are the keys of the configuration that hold for this run: what is left out by a file must not be left out in silence.
func (o *options) configured() []string {
	var names []string
	for name, at := range o.origins {
		if o.config.file != "" && strings.HasPrefix(at.by, o.config.file) {
			names = append(names, name)
		}
	}
	if len(o.config.severities) > 0 {
		names = append(names, severityKey)
	}
	return sorted(names)
}

// keyPlace names the line of a key.
func keyPlace(file, text, key string) string {
	is := regexp.MustCompile(`^\s*\[?\s*["']?` + regexp.QuoteMeta(key) + `["']?\s*[\]=.]`)
	for i, line := range strings.Split(text, "\n") {
		if is.MatchString(line) {
			return fmt.Sprintf("%s:%d", file, i+1)
		}
	}
	return file
}

// setting takes one key of a configuration.
func (o *options) setting(c *command, key string, v any, at string) error {
	switch key {
	case includeKey, compilerKey:
		words, err := texts(key, v)
		for _, word := range words {
			if key == includeKey {
				word = "-I" + o.config.beside(word)
			}
			o.config.compiler = append(o.config.compiler, word)
		}
		return err
	case severityKey:
		return o.severity(v)
	}
	if _, ok := settings[key]; !ok {
		names := []string{includeKey, compilerKey, severityKey}
		for name := range settings {
			names = append(names, name)
		}
		return fmt.Errorf("unknown key %q%s", key, nearest.Hint(key, sorted(names)))
	}
	words, err := texts(key, v)
	if err != nil {
		return err
	}
	if _, list := v.([]any); list && !slices.Contains(lists, key) {
		return fmt.Errorf("%s is one value, not a list", key)
	}
	value := strings.Join(words, ",")
	if key == "suppress" || key == "baseline" || key == "nvcc" && strings.Contains(value, "/") {
		value = o.config.beside(value)
	}
	f, take := configCommand().flag(key), c.configurable(key)
	if take {
		f = c.flag(key)
	}
	to := o
	if !take {
		to = &options{} // judged all the same
	}
	if err := f.set(to, value); err != nil {
		return within(f, err)
	}
	if take {
		o.origins[key] = origin{value, at}
	}
	return nil
}

// texts are the words of a value: one, or those of a list.
func texts(key string, v any) (words []string, err error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, x := range list {
		switch x := x.(type) {
		case string:
			words = append(words, x)
		case int64:
			words = append(words, strconv.FormatInt(x, 10))
		default:
			return nil, fmt.Errorf("%s is text, a number or a list of them", key)
		}
	}
	return words, nil
}

// beside gives a name in a configuration: relative ones are relative to its folder.
func (f *config) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.file), name)
}

// severity takes the table of severities.
func (o *options) severity(v any) error {
	table, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is a table: [severity] and then kind = \"warning\"", severityKey)
	}
	o.config.severities = map[detect.Kind]detect.Severity{}
	var kinds []string
	for kind := range table {
		kinds = append(kinds, kind)
	}
	for _, kind := range sorted(kinds) {
		if !slices.Contains(docs.Kinds(), kind) {
			return fmt.Errorf("unknown kind %q%s", kind, nearest.Hint(kind, docs.Kinds()))
		}
		word, _ := table[kind].(string)
		var s detect.Severity
		if err := choose(word, map[string]detect.Severity{"error": detect.Error, "warning": detect.Warning, "info": detect.Info}, "severity", &s); err != nil {
			return err
		}
		o.config.severities[detect.Kind(kind)] = s
	}
	return nil
}
