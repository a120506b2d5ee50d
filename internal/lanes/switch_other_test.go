//go:build !amd64

package lanes

func ways() []string { return []string{"portable"} }

func use(string) {}
