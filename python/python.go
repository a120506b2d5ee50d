// Package python holds Fencepost's Python modules, which "fencepost run" puts on the path of the Python programs it runs. They
// are the sources of the package that pyproject.toml describes, and start, which is not part of it.
package python

import "embed"

// Files are the modules: fencepost, the package, and start, whose sitecustomize every interpreter imports first.
//
//go:embed fencepost/*.py start/*.py
var Files embed.FS
