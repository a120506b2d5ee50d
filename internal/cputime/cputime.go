// Package cputime measures the processor time of a process, which concurrent processes affect little.
package cputime
