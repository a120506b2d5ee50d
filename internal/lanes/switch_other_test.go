//go:build !amd64

package lanes

// processor says nothing: there is no assembly.
type processor struct{}

func (processor) any() bool { return false }

func (processor) restore() {}

func setAssembly(bool) processor { return processor{} }
