// Package mutate tests tests. It changes a package in one place, as a mistake of its author would, and runs the tests.
// A change that no test detects (a surviving mutant) is behaviour that no test checks. docs/ARCHITECTURE.md describes
// how to use it.
package mutate
