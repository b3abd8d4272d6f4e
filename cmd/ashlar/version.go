package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"ashlar/app"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	var asJSON, components bool
	c := &cobra.Command{
		Use:   "version [--json | --sbom]",
		Short: "Print the version, the commit and the build",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			build := app.BuildInfo()
			switch {
			case components:
				return printSBOM(build)
			case asJSON:
				return printJSON(build)
			}
			commit := cmp.Or(build.Commit, "unknown")
			if build.Modified {
				commit += ", modified"
			}
			if build.Time != "" {
				commit += ", " + build.Time
			}
			signatures := "Go's own code"
			if build.C {
				signatures = "libsecp256k1"
			}
			fmt.Printf("%s\ncommit:     %s\nbuild:      %s, %s\nsignatures: %s\n", build.Client, commit, build.Go, build.Platform, signatures)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&components, "sbom", false, "print the modules in the program, as a CycloneDX list of components")
	exclusive(c, "json", "sbom")
	return c
}

// bom is a CycloneDX 1.5 document.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// printSBOM prints the modules that the Go command recorded in the program.
func printSBOM(build app.Build) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the program was built without information about its modules (want a program that go build made)")
	}
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{"application", "ashlar", build.Version, "pkg:generic/ashlar@" + build.Version, nil}}}
	b.Components = append(b.Components, goComponent("stdlib", strings.TrimPrefix(build.Go, "go"), ""))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, goComponent(m.Path, m.Version, m.Sum))
	}
	return printJSON(b)
}

// goComponent describes a module. sum is its hash as go.sum has it.
func goComponent(path, version, sum string) component {
	c := component{Type: "library", Name: path, Version: version, URL: "pkg:golang/" + path + "@" + version}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}
