// Package docs holds the manual. isa.md is made from the instruction table.
package docs

//go:generate go run ../cmd/fencepost isa --markdown isa.md
