package detect

import (
	"errors"
	"testing"
)

func TestChoose(t *testing.T) {
	var got string
	example := Spec{Name: "example", Options: []Option{{Name: "size", Values: []string{"4", "8"}}}}
	example.New = func(c Config) Detector { got = example.Option(c, "size"); return nil }
	list := []Spec{{Name: "other"}, example}
	for text, want := range map[string]string{"example": "4", "example:size=8": "8", "example:size=4": "4"} {
		s, err := Choose(list, text)
		if err != nil {
			t.Fatal(err)
		}
		if s.New(Config{}); s.Name != "example" || got != want {
			t.Errorf("%s: %s with size %s", text, s.Name, got)
		}
	}
	for text, want := range map[string]string{
		"exampel":        `there is no detector "exampel" (other, example)`,
		"example:sise=8": `there is no option of example "sise" (size)`,
		"example:size":   `there is no value of example:size "" (4, 8)`,
	} {
		_, err := Choose(list, text)
		if u := (*UnknownError)(nil); !errors.As(err, &u) || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
