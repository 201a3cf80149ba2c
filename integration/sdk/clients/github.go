package main

import (
	"context"
	"strconv"

	"github.com/google/go-github/v84/github"
)

// githubClient opens an issue.
func githubClient(ctx context.Context, word string) (string, error) {
	issue := &github.IssueRequest{Title: github.Ptr(word), Body: github.Ptr("How it broke")}
	made, _, err := github.NewClient(nil).WithAuthToken("none").Issues.Create(ctx, "octo", "hello", issue)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(made.GetNumber()), nil
}
