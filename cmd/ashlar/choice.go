package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that has one of some words.
type choice[T ~string] struct {
	chosen *T
	words  []T
}

// choiceFlag adds a flag that has one of some words, the first of which is the default.
func choiceFlag[T ~string](c *cobra.Command, chosen *T, name, usage string, words ...T) {
	*chosen = words[0]
	c.Flags().Var(&choice[T]{chosen, words}, name, usage)
}

// String implements pflag.Value.
func (c *choice[T]) String() string { return string(*c.chosen) }

// Type implements pflag.Value.
func (c *choice[T]) Type() string { return "string" }

// Set implements pflag.Value.
func (c *choice[T]) Set(text string) error {
	if !slices.Contains(c.words, T(text)) {
		return fmt.Errorf("expected %s", c.expected())
	}
	*c.chosen = T(text)
	return nil
}

// expected lists the words.
func (c *choice[T]) expected() string {
	all := make([]string, len(c.words))
	for i, word := range c.words {
		all[i] = string(word)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}
