import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class Client {
    public static void main(String[] args) throws Exception {
        var publisher = args[0].equals("POST")
                ? HttpRequest.BodyPublishers.ofByteArray(System.in.readAllBytes())
                : HttpRequest.BodyPublishers.noBody();
        var request = HttpRequest.newBuilder(URI.create(args[1])).method(args[0], publisher)
                .header("Content-Type", "application/json").build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println("STATUS " + answer.statusCode());
        answer.headers().map().forEach((name, values) -> values.forEach(v -> System.out.println(name + ": " + v)));
        System.out.println(answer.body());
    }
}
