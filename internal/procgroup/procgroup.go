// Package procgroup runs commands that start others so that all of them end together.
package procgroup
