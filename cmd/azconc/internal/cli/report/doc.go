// Package report gives the result of a command the form that -o and --query ask for: text for people, JSON, a table, or lines of
// values separated by tabs.
//
// All forms but text are made of the JSON of the result, whose members keep their order. A query is a JMESPath expression and is
// applied to that JSON. What the Azure CLI prints as a table or as TSV, this package prints alike, except that ETags are shown,
// a null is empty, and the columns of a result without a query are the members that its type has, present or not: the columns of a
// script's input must not depend on the data.
package report
