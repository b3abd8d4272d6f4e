package app

import (
	"net/http"
	"strings"
	"testing"
)

// All methods of families with an archive answer from it, and their answers say so.
func TestArchivesAnswerExecuted(t *testing.T) {
	for _, methods := range methodsOfFamilies(t)[:2] { // EVM and Starknet
		for method := range methods.All() {
			if got := method.Verified.String(); got != "executed" {
				t.Errorf("answers of %s are verified %s", method.Name, got)
			}
		}
	}
	s, key := served(t, nil)
	response, err := http.Post("http://"+s.server.Addr().String()+"/v3/"+key, "application/json", strings.NewReader(blockNumber))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := response.Header.Get("Ashlar-Verified"); got != "executed" {
		t.Errorf("the answer is verified %q", got)
	}
}
