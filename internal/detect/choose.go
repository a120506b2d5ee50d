package detect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// UnknownError reports a name that does not exist, with the valid names.
type UnknownError struct {
	What  string // "detector", "option of scord", ...
	Name  string
	Valid []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no %s %q (%s)", e.What, e.Name, strings.Join(e.Valid, ", "))
}

// Choose finds a detector by name. text is the name, followed by option values after colons: "scord:granularity=8". The
// New of the returned Spec makes detectors with these values. The error is an *UnknownError.
func Choose(list []Spec, text string) (Spec, error) {
	parts := strings.Split(text, ":")
	i := slices.IndexFunc(list, func(s Spec) bool { return s.Name == parts[0] })
	if i < 0 {
		var names []string
		for _, s := range list {
			names = append(names, s.Name)
		}
		return Spec{}, &UnknownError{"detector", parts[0], names}
	}
	spec := list[i]
	if len(parts) == 1 {
		return spec, nil
	}
	chosen := map[string]string{}
	for _, p := range parts[1:] {
		name, value, _ := strings.Cut(p, "=")
		o := slices.IndexFunc(spec.Options, func(o Option) bool { return o.Name == name })
		if o < 0 {
			var names []string
			for _, o := range spec.Options {
				names = append(names, o.Name)
			}
			return Spec{}, &UnknownError{"option of " + spec.Name, name, names}
		}
		if !slices.Contains(spec.Options[o].Values, value) {
			return Spec{}, &UnknownError{"value of " + spec.Name + ":" + name, value, spec.Options[o].Values}
		}
		chosen[name] = value
	}
	made := spec.New
	spec.New = func(c Config) Detector {
		all := maps.Clone(chosen)
		maps.Copy(all, c.Options)
		c.Options = all
		return made(c)
	}
	return spec, nil
}
