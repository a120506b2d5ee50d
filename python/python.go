// Package python contains Fencepost's Python modules, which "fencepost run" adds to the path of the Python programs
// that it runs. They are the sources of the package that pyproject.toml describes; start and fencepost.dist-info are
// not part of it.
package python

import "embed"

// Files are the modules: fencepost, the package; fencepost.dist-info, by which pytest knows its plugin where it is not installed; and
// start, whose sitecustomize every interpreter imports first.
//
//go:embed fencepost/*.py fencepost.dist-info start/*.py
var Files embed.FS
