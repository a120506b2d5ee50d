// Package mutate tests tests. It changes a package in one place, as a slip of its author would, and runs the tests: a
// change that no test notices (a mutant that survives) is behaviour that no test asks for. docs/ARCHITECTURE.md
// tells how to use it.
package mutate
