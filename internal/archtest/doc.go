// Package archtest holds the rules of the code base as tests: which way imports point, what packages may be called, and
// how files look. Each failure says what the rule is for.
package archtest
