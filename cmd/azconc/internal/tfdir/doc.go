// Package tfdir judges whether a working directory of Terraform or OpenTofu takes its backend from the environment.
//
// A client prefers the attributes of the backend block, then what init has stored, and then TF_HTTP_*. So an address that is
// stored makes it lock at one place and read at another.
package tfdir
