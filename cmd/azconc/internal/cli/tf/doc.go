// Package tf has the commands for states of Terraform and OpenTofu: azconc tf.
package tf
