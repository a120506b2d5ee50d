// Package toolchain finds the compilers Fencepost needs (nvcc, clang, the host C compiler) and calls them so that every
// memory access of the source stays in the PTX where the programmer wrote it.
package toolchain
