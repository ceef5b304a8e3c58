# Active Storage: the service of a Rails app whose attachments are in a bucket.
require 'logger'
require 'active_support'
require 'active_support/core_ext'
require 'active_storage'
require 'active_storage/service'
require 'active_storage/errors'
require 'net/http'
# Rails loads it by itself.
require File.join(Gem::Specification.find_by_name('activestorage').full_gem_path, 'app/models/active_storage/filename')

ActiveStorage.logger = Logger.new(nil)
storage = ActiveStorage::Service.configure(
  :door,
  door: {
    service: 'S3', endpoint: ENV['ENDPOINT'], force_path_style: true, region: 'us-east-1', bucket: ENV['BUCKET'],
    access_key_id: ENV['AWS_ACCESS_KEY_ID'], secret_access_key: ENV['AWS_SECRET_ACCESS_KEY'],
    upload: { multipart_threshold: 6 * 1024 * 1024, cache_control: 'private, max-age=60' }
  }
)

def is(found, expected)
  raise "found #{found.inspect[0, 500]}, expected #{expected.inspect[0, 500]}" unless found == expected
end

def refuses(error)
  yield
rescue error
  nil
else
  raise "no #{error}"
end

notes = File.binread('files/notes.txt')
big = File.binread('files/big.bin')
digest = ->(bytes) { Digest::MD5.base64digest(bytes) }

storage.upload(
  'abc/notes', StringIO.new(notes),
  checksum: digest.(notes), content_type: 'text/plain', disposition: :attachment, filename: ActiveStorage::Filename.new('Größe.txt')
)
is storage.exist?('abc/notes'), true
is storage.exist?('abc/none'), false
is storage.download('abc/notes'), notes
is storage.download_chunk('abc/notes', 2..5), notes[2..5]
refuses(ActiveStorage::IntegrityError) { storage.upload('abc/refused', StringIO.new(notes), checksum: digest.('other')) }
is storage.exist?('abc/refused'), false

# In parts, and downloaded in blocks.
File.open('files/big.bin') { |file| storage.upload('abc/big', file, checksum: digest.(big)) }
blocks = []
storage.download('abc/big') { |block| blocks << block }
is blocks.join, big

# A URL for downloads, and one for direct uploads of browsers.
url = storage.url(
  'abc/notes',
  expires_in: 60, disposition: :inline, filename: ActiveStorage::Filename.new('notes.txt'), content_type: 'text/plain'
)
response = Net::HTTP.get_response(URI(url))
is [response.code, response.body.b, response['content-type']], ['200', notes, 'text/plain']
is response['content-disposition'], "inline; filename=\"notes.txt\"; filename*=UTF-8''notes.txt"
options = { content_type: 'image/png', content_length: notes.bytesize, checksum: digest.(notes) }
url = URI(storage.url_for_direct_upload('abc/direct', expires_in: 60, **options))
headers = storage.headers_for_direct_upload('abc/direct', filename: ActiveStorage::Filename.new('direct.png'), disposition: :inline, **options)
send_direct = lambda do |bytes|
  request = Net::HTTP::Put.new(url, headers.transform_keys(&:to_s))
  request.body = bytes
  Net::HTTP.start(url.host, url.port) { |http| http.request(request) }
end
is send_direct.(notes.reverse).code, '400'
is send_direct.(notes).code, '200'
is storage.download('abc/direct'), notes

storage.delete('abc/notes')
storage.delete('abc/notes')
refuses(ActiveStorage::FileNotFoundError) { storage.download('abc/notes') }
storage.delete_prefixed('abc/')
is storage.exist?('abc/big'), false
is storage.bucket.objects.to_a, []
