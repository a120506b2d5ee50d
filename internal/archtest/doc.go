// Package archtest contains the rules of the code base as tests: the direction of imports, the names of packages, and
// the layout of files. Each failure says what the rule is for.
package archtest
