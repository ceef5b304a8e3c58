require "net/http"

class PicturesController < ActionController::Base
  URL = URI(ENV.fetch("MEDIABUCKET_URL"))
  TOKEN = ENV.fetch("MEDIABUCKET_TOKEN")

  helper_method :with_width

  def index
    query = { kind: "image", order: "newest", urls: "signed" }.to_query
    @pictures = send_request(Net::HTTP::Get.new("/api/items?#{query}"))["data"]
  end

  def create
    file = params.require(:file)
    request = Net::HTTP::Post.new("/api/media")
    request.set_form([["file", file.to_io, { filename: file.original_filename, content_type: file.content_type }]], "multipart/form-data")
    send_request(request)
    redirect_to "/"
  end

  private

  # The service chooses a size for each width; a link of a private bucket has parameters already.
  def with_width(url, width)
    "#{url}#{url.include?("?") ? "&" : "?"}w=#{width}"
  end

  def send_request(request)
    request["Authorization"] = "Bearer #{TOKEN}"
    response = Net::HTTP.start(URL.host, URL.port, use_ssl: URL.scheme == "https") { |http| http.request(request) }
    result = JSON.parse(response.body)
    # `detail` of a problem is a sentence for people.
    raise result["detail"] unless response.is_a?(Net::HTTPSuccess)

    result
  end
end
