# Reads what go test -json writes. Prints what go test prints without -json, and at the end writes to the file in the variable tally one
# line for each group of tests: passed COUNT, failed COUNT, skipped COUNT REASON.
function field(name,    text) {
	if (!match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\"")) return ""
	text = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
	gsub(/\\n/, "\n", text); gsub(/\\t/, "\t", text); gsub(/\\"/, "\"", text)
	gsub(/\\u003c/, "<", text); gsub(/\\u003e/, ">", text); gsub(/\\u0026/, "\\&", text); gsub(/\\\\/, "\\", text)
	return text
}
!/^\{/ { print; next }
{
	action = field("Action"); test = field("Test"); key = field("Package") " " test
	if (action == "build-output" || action == "output" && test == "") {
		line = field("Output")
		if (line != "PASS\n") printf "%s", line
		fflush()
	} else if (action == "output") {
		said[key] = said[key] field("Output")
	} else if (test != "" && (action == "pass" || action == "skip" || action == "fail")) {
		if (action == "fail") printf "%s", said[key]
		if (test !~ /\//) {
			count[action]++
			if (action == "skip") {
				why = said[key]
				sub(/^(.*\n)*[^\n]*_test\.go:[0-9]+: */, "", why); sub(/^SKIP: */, "", why); sub(/\n.*$/, "", why)
				skipped[why]++
			}
		}
		delete said[key]
	}
}
END {
	print "passed " count["pass"] + 0 > tally
	print "failed " count["fail"] + 0 > tally
	for (why in skipped) print "skipped " skipped[why] " " why > tally
}
