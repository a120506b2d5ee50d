//go:build !amd64

package lanes

func tiers() []string { return []string{"portable"} }

func use(string) {}
