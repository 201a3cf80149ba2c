require "net/http"
method, url = ARGV
uri = URI(url)
request = (method == "POST" ? Net::HTTP::Post : Net::HTTP::Get).new(uri, "Content-Type" => "application/json")
request.body = STDIN.read if method == "POST"
a = Net::HTTP.start(uri.host, uri.port, use_ssl: true) { |http| http.request(request) }
puts "STATUS #{a.code}"
a.each_header { |name, value| puts "#{name}: #{value}" }
puts a.body
