package demo

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The compiled contracts are those of the sources: none forgotten, none left over.
func TestContractsAreTheSources(t *testing.T) {
	all, err := loadContracts()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("contracts/*.sol")
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?m)^contract (\w+)`)
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declaration.FindAllSubmatch(source, -1) {
			found++
			if _, err := all.get(string(match[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if found != len(all) {
		t.Errorf("contracts.json has %d contracts, the sources have %d", len(all), found)
	}
}

func TestPackingSaysWhatIsWrong(t *testing.T) {
	all, err := loadContracts()
	if err != nil {
		t.Fatal(err)
	}
	for name, pack := range map[string]func() ([]byte, error){
		"contract": func() ([]byte, error) { return all.call("Nothing", "transfer") },
		"method":   func() ([]byte, error) { return all.call("Token", "steal") },
		"argument": func() ([]byte, error) { return all.call("Token", "transfer", "to me") },
		"creation": func() ([]byte, error) { return all.create("Token") },
	} {
		if _, err := pack(); err == nil {
			t.Errorf("wrong %s: no error", name)
		}
	}
}
