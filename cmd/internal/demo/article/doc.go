// Package article is the table of "Managing concurrency in Azure Storage": for each of its rows the library call, the command, the test and the
// scene of azconc demo. It is a test alone, which writes and checks .github/docs/article.md.
package article
