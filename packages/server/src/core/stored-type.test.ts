import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { fileTypeFromBuffer, supportedMimeTypes } from 'file-type'
import mime from 'mime'
import otherTypes from 'mime/types/other.js'
import standardTypes from 'mime/types/standard.js'
import { expect, test } from 'vitest'
import { isInlineType, storedNameOf, storedType } from './stored-type.ts'

/** A ZIP archive of stored files, as an office program would begin its document. */
function zip(files: Readonly<Record<string, string>>): Buffer {
  const locals: Buffer[] = []
  const centrals: Buffer[] = []
  let offset = 0
  for (const [name, text] of Object.entries(files)) {
    const shared = Buffer.alloc(26)
    shared.writeUInt16LE(20, 0)
    shared.writeUInt32LE(crc32(text), 10)
    shared.writeUInt32LE(Buffer.byteLength(text), 14)
    shared.writeUInt32LE(Buffer.byteLength(text), 18)
    shared.writeUInt16LE(Buffer.byteLength(name), 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), shared, Buffer.from(name + text)])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(offset, 10)
    const version = Buffer.from([20, 0])
    centrals.push(Buffer.concat([Buffer.from('PK\x01\x02'), version, shared, rest, Buffer.from(name)]))
    locals.push(local)
    offset += local.length
  }
  const central = Buffer.concat(centrals)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(locals.length, 4)
  end.writeUInt16LE(locals.length, 6)
  end.writeUInt32LE(central.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...locals, central, Buffer.from('PK\x05\x06'), end])
}

const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
const odt = 'application/vnd.oasis.opendocument.text'
const epub = 'application/epub+zip'
const kmz = 'application/vnd.google-earth.kmz'
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=',
  'base64',
)
const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex')
const cfb = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(504)])
const prolog = '<?xml version="1.0"?>\n'
const plainZip = zip({ 'a.txt': 'hello' })
const docx = zip({
  '[Content_Types].xml': `<Types><Override PartName="/word/document.xml" ContentType="${word}.main+xml"/></Types>`,
  'word/document.xml': '<w:document/>',
})

const startOf = (head: Uint8Array) => ({ head, size: head.byteLength })
const nothing = startOf(Buffer.alloc(0))

const octets = ['application/octet-stream', null]

test.each<[string, Buffer | string, string | null, string | null, (string | null)[]]>([
  ['a PNG as declared', png, 'image/png', 'a.png', ['image/png', 'png']],
  ['a PNG that is declared as text', png, 'text/plain', 'a.txt', ['image/png', 'png']],
  ['a PNG without any name', png, null, null, ['image/png', 'png']],
  ['a JPEG named .jpeg', jpeg, 'image/jpeg', 'a.jpeg', ['image/jpeg', 'jpg']],
  ['a Word document', docx, word, 'a.docx', [word, 'docx']],
  ['a Word document sent as bytes', docx, 'application/octet-stream', 'a.bin', [word, 'docx']],
  ['an OpenDocument text', zip({ mimetype: odt, 'content.xml': '<x/>' }), odt, 'a.odt', [odt, 'odt']],
  ['an EPUB', zip({ mimetype: epub, 'META-INF/container.xml': '' }), epub, 'a.epub', [epub, 'epub']],
  ['an EPUB in an unusual order', zip({ 'a.xml': '', mimetype: epub }), epub, 'a.epub', [epub, 'epub']],
  ['a KMZ', zip({ 'doc.kml': '<kml/>' }), kmz, 'a.kmz', [kmz, 'kmz']],
  ['a ZIP', plainZip, 'application/zip', 'a.zip', ['application/zip', 'zip']],
  ['a ZIP with a false name', plainZip, kmz, 'a.doc', ['application/zip', 'zip']],
  ['a ZIP that is declared as PDF', plainZip, 'application/pdf', 'a.pdf', ['application/zip', 'zip']],
  ['a ZIP that is declared as PNG', plainZip, 'image/png', 'a.png', ['application/zip', 'zip']],
  ['a ZIP from a form', plainZip, 'application/x-www-form-urlencoded', null, ['application/zip', 'zip']],
  ['an old Word document', cfb, 'application/msword', 'a.DOC', ['application/msword', 'doc']],
  ['an old Excel sheet', cfb, 'application/vnd.ms-excel', 'a.xls', ['application/vnd.ms-excel', 'xls']],
  ['an OLE file', cfb, null, 'a', ['application/x-cfb', 'cfb']],
  ['an undeclared Word document', cfb, null, 'a.doc', ['application/msword', 'doc']],
  ['SVG', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml', 'a.svg', ['image/svg+xml', 'svg']],
  ['SVG with a prolog', `${prolog}<svg/>`, 'image/svg+xml', 'a.svg', ['image/svg+xml', 'svg']],
  ['SVG with a prolog, undeclared', `${prolog}<svg/>`, null, 'a.svg', ['image/svg+xml', 'svg']],
  ['XHTML', `${prolog}<html/>`, 'application/xhtml+xml', 'a.xhtml', ['application/xhtml+xml', 'xhtml']],
  ['XML', `${prolog}<a/>`, 'text/xml', 'a.xml', ['text/xml', 'xml']],
  ['XML without a prolog', '<a/>', 'application/xml', 'a.xml', ['application/xml', 'xml']],
  ['text', 'hello', 'text/plain', 'a.txt', ['text/plain', 'txt']],
  ['text with a charset', 'hello', 'Text/Plain; charset=UTF-8', 'A.TXT', ['text/plain', 'txt']],
  ['CSV', 'a,b\n1,2\n', 'text/csv', 'a.csv', ['text/csv', 'csv']],
  ['JSON', '{"a":1}', 'application/json', 'a.json', ['application/json', 'json']],
  ['HTML', '<!doctype html><p>a', 'text/html', 'a.html', ['text/html', 'html']],
  ['Markdown', '# a', 'text/markdown', 'a.md', ['text/markdown', 'md']],
  ['CSS', 'a{}', 'text/css', 'a.css', ['text/css', 'css']],
  ['JavaScript', 'a()', 'text/javascript', 'a.js', ['text/javascript', 'js']],
  ['a calendar', 'BEGIN:VCALENDAR\r\n', 'text/calendar', 'a.ics', ['text/calendar', 'ics']],
  ['a card', 'BEGIN:VCARD\r\n', null, null, ['text/vcard', 'vcf']],
  ['binary STL', Buffer.alloc(84), 'model/stl', 'a.stl', ['model/stl', 'stl']],
  ['an empty text', '', 'text/plain', 'a.txt', ['text/plain', 'txt']],
  ['text with another extension', 'hello', 'text/plain', 'a.csv', octets],
  ['text without a name', 'hello', 'text/plain', null, ['text/plain', 'txt']],
  ['JSON without a name', '{}', 'application/json; charset=utf-8', null, ['application/json', 'json']],
  ['CSV without a name', 'a,b', 'text/csv', null, ['text/csv', 'csv']],
  ['HTML without a name', '<p>', 'text/html', null, ['text/html', 'html']],
  ['nothing that is known', 'hello', null, null, octets],
  ['a picture that is none, without a name', 'hello', 'image/png', null, octets],
  ['parts without a name', 'hello', 'multipart/x-mixed-replace; boundary=a', null, octets],
  ['a type without a name that is none', 'hello', 'nonsense', null, octets],
  ['a type of an object’s name without a name', 'hello', '__proto__', null, octets],
  ['a raw body of curl without a name', 'a=b', 'application/x-www-form-urlencoded', null, octets],
  [
    'a ZIP that is declared as PDF, without a name',
    plainZip,
    'application/pdf',
    null,
    ['application/zip', 'zip'],
  ],
  ['text without an extension', 'hello', 'text/plain', 'txt', octets],
  ['text that hides its extension', 'hello', 'text/plain', '.txt', octets],
  ['text without a type', 'hello', null, 'a.txt', ['text/plain', 'txt']],
  ['Markdown without a type', '# a', null, 'README.MD', ['text/markdown', 'md']],
  ['JSON sent as bytes', '{}', 'application/octet-stream', 'a.json', ['application/json', 'json']],
  ['CSV sent as bytes', 'a,b', 'Application/Octet-Stream; x=y', 'a.csv', ['text/csv', 'csv']],
  ['a transport stream by its name alone', 'let a', null, 'a.ts', octets],
  ['a PNG by its name alone', 'hello', null, 'a.png', octets],
  ['a ZIP by the name of a PDF', plainZip, null, 'a.pdf', ['application/zip', 'zip']],
  ['a program', 'hello', null, 'a.exe', octets],
  ['an unknown extension', 'hello', null, 'a.unknown', octets],
  ['a type of an object’s name, undeclared', 'hello', null, 'a.constructor', octets],
  ['bytes', 'hello', 'application/octet-stream', 'a.bin', octets],
  ['a raw body of curl', 'a=b', 'application/x-www-form-urlencoded', 'a.txt', ['text/plain', 'txt']],
  ['a PNG without its signature', 'hello', 'image/png', 'a.png', octets],
  ['a bitmap by another name of its type', 'hello', 'image/x-ms-bmp', 'a.bmp', octets],
  ['Matroska by another name of its type', 'hello', 'video/x-matroska', 'a.mkv', octets],
  ['a PDF after a blank line', '\r\n\r\n%PDF-1.4\n', 'application/pdf', 'a.pdf', ['application/pdf', 'pdf']],
  [
    'a PDF in a print job',
    `${'\x1b%-12345X'.repeat(100)}%PDF-1.4`,
    null,
    'a.pdf',
    ['application/pdf', 'pdf'],
  ],
  ['a PDF after 1,024 bytes', `${' '.repeat(1_024)}%PDF-1.4\n`, null, 'a.pdf', ['application/pdf', 'pdf']],
  ['a PDF after 1,025 bytes', `${' '.repeat(1_025)}%PDF-1.4\n`, null, 'a.pdf', octets],
  [
    'a PDF after a blank line, without a name',
    '\n%PDF-1.4\n',
    'application/pdf',
    null,
    ['application/pdf', 'pdf'],
  ],
  ['a text about PDF', 'It begins with %PDF-1.4', 'text/plain', 'a.txt', ['text/plain', 'txt']],
  ['a PDF without its signature', '<script>', 'application/pdf', 'a.pdf', octets],
  ['a calendar that is none', 'hello', 'text/calendar', 'a.ics', octets],
  ['a type that is none', 'hello', 'nonsense', 'a.txt', octets],
  ['a type of an object’s name', 'hello', '__proto__', 'a.constructor', octets],
])('U7 %s', async (_, bytes, declared, filename, expected) => {
  const head = Buffer.from(bytes)
  const sniffed = (await fileTypeFromBuffer(head)) ?? null
  const { contentType, extension } = storedType({ sniffed, declared, filename, start: startOf(head) })
  expect([contentType, extension]).toEqual(expected)
})

test('U7 every type that the sniffer detects has an extension that is safe in a URL', () => {
  const source = new URL('./supported.js', import.meta.resolve('file-type'))
  const names = [...readFileSync(source, 'utf8').matchAll(/'([\w.]{1,10})',/g)].flatMap(([, ext = '']) => ext)
  expect(names.length).toBeGreaterThan(150)
  for (const ext of names) {
    const { extension } = storedType({
      sniffed: { mime: 'a/b', ext },
      declared: null,
      filename: null,
      start: nothing,
    })
    expect(extension).toBe(ext === 'tar.gz' ? 'gz' : ext.toLowerCase())
  }
})

const declared = fc.oneof(fc.constantFrom(...supportedMimeTypes), fc.string())
const filename = fc.oneof(
  fc.string(),
  fc.constantFrom(...supportedMimeTypes).map((type) => `a.${mime.getExtension(type)}`),
)
const sniffed = fc.option(
  fc.record({ mime: fc.constantFrom('application/zip', 'image/png'), ext: fc.string() }),
)

test('U7 L14 an extension is safe in a URL for any declared type', () => {
  fc.assert(
    fc.property(sniffed, declared, filename, (shown, type, name) => {
      const { extension } = storedType({ sniffed: shown, declared: type, filename: name, start: nothing })
      if (extension !== null) expect(extension).toMatch(/^[a-z0-9]{1,16}$/)
    }),
  )
})

test('U7 B6 except plain text, no type is served inline because the client declared it', () => {
  const types = new Set([...supportedMimeTypes, ...Object.keys(standardTypes), ...Object.keys(otherTypes)])
  types.delete('text/plain')
  const wrappings = ['application/zip', 'application/xml', 'application/x-cfb'].map((type) => ({
    mime: type,
    ext: 'zip',
  }))
  for (const type of types) {
    for (const extension of mime.getAllExtensions(type) ?? []) {
      for (const shown of [null, ...wrappings]) {
        for (const said of [type, null]) {
          for (const filename of [`a.${extension}`, null]) {
            const evidence = { sniffed: shown, declared: said, filename, start: nothing }
            const { contentType } = storedType(evidence)
            if (contentType === 'text/plain') expect(mime.getType(extension)).toBe('text/plain')
            else expect(isInlineType(contentType), `${type} ${extension}`).toBe(false)
          }
        }
      }
    }
  }
})

test('U7 B6 a container that is declared as plain text is not served inline', () => {
  const shown = { mime: 'application/zip', ext: 'zip' }
  const expected = storedType({ sniffed: shown, declared: 'text/plain', filename: 'a.txt', start: nothing })
  expect(expected).toEqual({ contentType: 'application/zip', extension: 'zip' })
})

test.each([
  ['image/jpg', 'image/jpeg'],
  ['image/pjpeg', 'image/jpeg'],
  ['image/x-png', 'image/png'],
  ['image/x-ms-bmp', 'image/bmp'],
  ['image/vnd.microsoft.icon', 'image/x-icon'],
  ['audio/mp3', 'audio/mpeg'],
  ['audio/x-wav', 'audio/wav'],
  ['audio/x-flac', 'audio/flac'],
  ['audio/x-aiff', 'audio/aiff'],
  ['audio/x-aac', 'audio/aac'],
  ['audio/m4a', 'audio/x-m4a'],
  ['video/x-msvideo', 'video/vnd.avi'],
  ['video/x-matroska', 'video/matroska'],
  ['application/x-gzip', 'application/gzip'],
  ['application/x-pdf', 'application/pdf'],
  ['text/rtf', 'application/rtf'],
  ['application/vnd.rar', 'application/x-rar-compressed'],
])('T9 %s is stored as %s, which is the name that is detected', (other, stored) => {
  expect(storedNameOf(other)).toBe(stored)
  expect(storedNameOf(stored)).toBe(stored)
  expect(supportedMimeTypes.has(stored)).toBe(true)
  expect(supportedMimeTypes.has(other)).toBe(false)
})
