// Package cputime measures what a process takes of the processor, which others that run beside it change little.
package cputime
