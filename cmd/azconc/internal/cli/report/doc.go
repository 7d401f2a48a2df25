// Package report gives the result of a command the form that -o and --query ask for: text for people, JSON, a table, or lines of
// values separated by tabs.
//
// All forms but text are made of the JSON of the result. A query is a JMESPath expression and is applied to that JSON. Columns are
// the members that the type of the result has, present or not: those of a script's input must not depend on the data. What a query
// selects has no type: its members are in alphabetical order, and a list, [name, size], has its values in the order of the expression.
// Otherwise a table and TSV are what the Azure CLI prints, except that ETags are shown, and a null is empty.
package report
