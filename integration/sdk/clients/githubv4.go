package main

import (
	"context"

	"github.com/shurcooL/githubv4"
	"golang.org/x/oauth2"
)

// githubGraphQLClient comments on an issue by the library that gh's own changes are written with.
func githubGraphQLClient(ctx context.Context, word string) (string, error) {
	var made struct {
		AddComment struct {
			CommentEdge struct{ Node struct{ URL githubv4.URI } }
		} `graphql:"addComment(input: $input)"`
	}
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "none"})
	input := githubv4.AddCommentInput{SubjectID: "I_41", Body: githubv4.String(word)}
	if err := githubv4.NewClient(oauth2.NewClient(ctx, token)).Mutate(ctx, &made, input, nil); err != nil {
		return "", err
	}
	return made.AddComment.CommentEdge.Node.URL.String(), nil
}
