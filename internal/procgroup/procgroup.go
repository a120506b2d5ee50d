// Package procgroup runs commands that start other processes so that all of them end together.
package procgroup
