// Package ref parses the names and URLs of blobs, containers, files, shares, tables and entities.
package ref
