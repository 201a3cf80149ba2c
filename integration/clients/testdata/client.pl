use strict;
use warnings;
use LWP::UserAgent;
my ($method, $url) = @ARGV;
my $agent = LWP::UserAgent->new(env_proxy => 1);
my $body = $method eq "POST" ? do { local $/; <STDIN> } : undef;
my $answer = $agent->request(HTTP::Request->new($method, $url, [ "Content-Type" => "application/json" ], $body));
print "STATUS ", $answer->code, "\n", $answer->headers->as_string, "\n", $answer->decoded_content, "\n";
