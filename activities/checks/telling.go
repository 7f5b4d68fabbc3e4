package checks

// TellingLine is the one line of an output that may leave the host: the one that says most, without anything that looks like a
// secret. After a failure it is the first that speaks of one, else the last.
func TellingLine(output []byte, failed bool) string { return shown(tellingLine(output, failed)) }
