package conformance

import "strings"

// Later is a conversation, or a folder of them if the name ends with a slash, that Ashlar does not
// support yet, or by design not for a chain from a file.
type Later struct{ Name, Why string }

// laterTable is complete: every other conversation must be answered as recorded.
func laterTable() []Later {
	const (
		finality = "a chain from a file has no finality; TestFollowed and TestDriven replay it on one that is not"
		sending  = "a chain from a file accepts no transactions; TestFollowed and TestDriven replay it on one that is not"
		building = "Ashlar builds no blocks on request"
		others   = "the recorded pool has transactions that no conversation sent, and lacks one with blobs that Ashlar lists"
		keeping  = "the recording is of a node that deletes old logs; Ashlar keeps all of them and names no window"
	)
	return []Later{
		{"eth_getBlockByNumber/get-finalized", finality},
		{"eth_getBlockByNumber/get-safe", finality},
		{"eth_capabilities/", keeping},
		{"eth_sendRawTransaction/", sending},
		{"testing_buildBlockV1/", building},
		{"txpool_content/", others},
		{"txpool_contentFrom/", sending},
		{"txpool_status/", sending},
	}
}

func (l Later) matches(conversation string) bool {
	if strings.HasSuffix(l.Name, "/") {
		return strings.HasPrefix(conversation, l.Name)
	}
	return conversation == l.Name
}

// Postponed returns why a conversation does not apply to a chain without finality and
// transactions that wait; false if it does.
func Postponed(conversation string) (why string, postponed bool) {
	for _, l := range laterTable() {
		if l.matches(conversation) {
			return l.Why, true
		}
	}
	return "", false
}
