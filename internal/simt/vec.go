package simt

type vecWarp struct{}
