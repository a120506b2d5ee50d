// Package sums is a package to mutate.
package sums

// Below counts the numbers below a limit.
func Below(list []int, limit int) (n int) {
	for _, x := range list {
		if x < limit {
			n++
		}
	}
	return n
}

// Halve halves a number until it is odd.
func Halve(n int) int {
	for n > 0 && n%2 == 0 {
		n /= 2
	}
	return n
}

// Largest gives the larger of two numbers.
func Largest(a, b int) int {
	if a > b {
		return a
	}
	return b
}

// Untested is called by no test.
func Untested() bool { return true }

// Must panics.
func Must(ok bool) {
	if !ok {
		panic("BUG: not ok")
	}
}
