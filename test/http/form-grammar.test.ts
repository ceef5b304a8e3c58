import { beforeAll, describe, expect, test } from 'vitest'
import { sendForm } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { countStored } from '../harness/resources.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { readItem, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const typeOf = (boundary: string) => `multipart/form-data; boundary=${boundary}`
const disposition = (more = '; filename="a.txt"') => `Content-Disposition: form-data; name="f"${more}`
/** A part with its delimiter. */
const part = (content: string, head = disposition()) => `--b\r\n${head}\r\n\r\n${content}\r\n`
const last = '--b--\r\n'

describe('U10 a form that RFC 2046 or RFC 7578 does not allow is refused with 400, and nothing is stored', () => {
  test.each<[string, string, string?]>([
    ['text behind a delimiter', `${part('one')}--bX\r\n${disposition()}\r\n\r\ntwo\r\n${last}`],
    ['text behind the last delimiter', `${part('one\r\n--b--X\r\ntwo')}${last}`],
    ['a last delimiter with one dash', `${part('one\r\n--b-\r\ntwo')}${last}`],
    ['a last delimiter with three dashes', `${part('one')}--b---\r\n`],
    ['a last delimiter that ends in LF', `${part('one')}--b--\n`],
    ['a file with the last delimiter in it', `${part('one\r\n--b--\r\ntwo')}${last}`],
    ['a file with a longer boundary in it', `${part('one\r\n--bb\r\ntwo\r\n--bb--')}${last}`],
    ['a part after the last delimiter', `${part('one')}${last}${part('two')}${last}`],
    ['a part of another boundary after the end', `${part('one')}${last}${part('two').replace('--b', '--c')}`],
    ['a part before the first delimiter', `${disposition()}\r\n\r\nzero\r\n${part('one')}${last}`],
    ['a part of another boundary before it', `${part('zero').replace('--b', '--c')}${part('one')}${last}`],
    ['LF before a delimiter', `${part('one').replace(/\r\n$/, '\n')}${part('two')}${last}`],
    ['CR before a delimiter', `${part('one').replace(/\r\n$/, '\r')}${part('two')}${last}`],
    ['LF alone everywhere', `${`${part('one')}${last}\r\n`.replaceAll('\r\n', '\n')}\r\n`],
    ['LF behind a delimiter', `${part('one')}${part('two').replace('\r\n', '\n')}${last}`],
    ['LF between two headers', part('one', `${disposition()}\nContent-Type: text/plain`) + last],
    ['CR between two headers', part('one', `${disposition()}\rContent-Type: text/plain`) + last],
    ['a delimiter among headers', `--b\r\n${disposition()}\r\n${part('two')}${last}`],
    [
      'a delimiter that looks like a header',
      `--b:c\r\n${disposition()}\r\n--b:c\r\n${disposition()}\r\n\r\ntwo\r\n--b:c--\r\n`,
      '"b:c"',
    ],
    ['a folded line before any header', part('one', ` X: y\r\n${disposition()}`) + last],
    ['a space before the colon', part('one', disposition().replace(':', ' :')) + last],
    ['NUL in a type', part('one', `${disposition()}\r\nContent-Type: text/\0plain`) + last],
    ['NUL in the name of a header', part('one', `X\0: y\r\n${disposition()}`) + last],
    ['two dispositions', part('one', `${disposition('')}\r\n${disposition()}`) + last],
    ['two types', part('one', `${disposition()}\r\nContent-Type: a/b\r\ncontent-type: c/d`) + last],
    ['two filenames', part('one', disposition('; filename="a"; filename="b"')) + last],
    ['two names', part('one', disposition('; name="g"; filename="b"')) + last],
    ['a continued filename', part('one', disposition('; filename*0="a"; filename*1=".txt"')) + last],
    ['a continued and encoded filename', part('one', disposition("; filename*0*=UTF-8''a")) + last],
    ['a malformed filename*', part('one', disposition('; filename*=a.txt')) + last],
    ['an open quote', part('one', disposition('; filename="a')) + last],
    ['a disposition of attachment', part('one', disposition().replace('form-data', 'attachment')) + last],
    ['base64', part('b25l', `${disposition()}\r\nContent-Transfer-Encoding: base64`) + last],
    [
      'quoted-printable',
      part('=41', `${disposition()}\r\nContent-Transfer-Encoding: Quoted-Printable`) + last,
    ],
    [
      'files within a part',
      part(
        `--c\r\nContent-Disposition: file; filename="a"\r\n\r\none\r\n--c--`,
        `${disposition('')}\r\nContent-Type: multipart/mixed; boundary=c`,
      ) +
        part('two') +
        last,
    ],
    ['an empty boundary', `${part('one')}${last}`.replaceAll('--b', '--'), '""'],
    ['a boundary that ends in a space', `${part('one')}${last}`.replaceAll('--b', '--b '), '"b "'],
    [
      'a boundary of 71 characters',
      `${part('one')}${last}`.replaceAll('--b', `--${'b'.repeat(71)}`),
      'b'.repeat(71),
    ],
    ['a boundary with *', `${part('one')}${last}`.replaceAll('--b', '--b*'), 'b*'],
    ['a boundary with a tab', `${part('one')}${last}`.replaceAll('--b', '--b\tb'), '"b\tb"'],
    ['two boundaries', part('one') + last, 'b; boundary=c'],
    ['a boundary in an open quote', part('one') + last, '"b'],
    ['a boundary with a space behind it', part('one') + last, 'b c'],
  ])('%s', async (_, body, boundary = 'b') => {
    const before = await countStored(server)
    await expectProblem(
      await sendForm(server, Buffer.from(body, 'latin1'), typeOf(boundary)),
      400,
      'form-malformed',
    )
    expect(await countStored(server)).toEqual(before)
  })

  test.each([
    ['a last delimiter that ends in CR', `${part('one')}--b--\r`],
    ['a file with a delimiter in it', `${part('one\r\n--b\r\ntwo')}${last}`],
    ['no last delimiter', part('one')],
    ['half a last delimiter', `${part('one')}--b-`],
    ['the last file without its line end', `${part('one').slice(0, -2)}--b--\r\n`],
    ['half a delimiter', `${part('one\r\n--b').slice(0, -2)}`],
  ])('%s', async (_, body) => {
    const before = await countStored(server)
    await expectProblem(await sendForm(server, body, typeOf('b')), 400, 'upload-incomplete')
    expect(await countStored(server)).toEqual(before)
  })

  test.each(['Multipart/Form-Data', 'multipart/form-data; boundary'])('the type %s', async (type) => {
    const before = await countStored(server)
    await expectProblem(await sendForm(server, part('one') + last, type), 400, 'form-malformed')
    expect(await countStored(server)).toEqual(before)
  })

  test.each(['multipart/form-data boundary=b', 'multipart/form-data, boundary=b'])(
    'the type %s',
    async (type) => {
      const before = await countStored(server)
      await expectProblem(await sendForm(server, part('one') + last, type), 400, 'request-malformed')
      expect(await countStored(server)).toEqual(before)
    },
  )

  test('two Content-Type headers', async () => {
    const before = await countStored(server)
    const body = part('one') + last
    const head = `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nConnection: close\r\nContent-Length: ${body.length}`
    const types = `Content-Type: text/plain\r\nContent-Type: ${typeOf('b')}`
    const response = responseOf(await sendRaw(server.url, `${head}\r\n${types}\r\n\r\n${body}`))
    await expectProblem(response, 400, 'request-malformed')
    expect(await countStored(server)).toEqual(before)
  })
})

describe('U1 unusual forms that RFC 2046 and RFC 7578 allow are read exactly', () => {
  test.each<[string, string, string[], string?]>([
    ['text around the parts', `text\r\n${part('one')}${last}text`, ['one']],
    ['an empty line first', `\r\n${part('one')}${last}`, ['one']],
    ['no line end at the end', `${part('one')}--b--`, ['one']],
    ['padding behind delimiters', `${part('one').replace('b', 'b \t')}--b-- \t\r\n`, ['one']],
    ['a part without a body', `--b\r\n${disposition()}\r\n\r\n${part('two')}${last}`, ['', 'two']],
    ['a part without a body at the end', `--b\r\n${disposition()}\r\n\r\n${last}`, ['']],
    ['duplicate names', part('one') + part('two') + last, ['one', 'two']],
    ['folded headers', part('one', disposition(';\r\n\tfilename="a.txt"')) + last, ['one']],
    ['a name in filename* alone', part('one', disposition("; filename*=UTF-8''a.txt")) + last, ['one']],
    [
      '_charset_',
      part('utf-8', 'Content-Disposition: form-data; name="_charset_"') + part('one') + last,
      ['one'],
    ],
    [
      'an identity encoding',
      part('one', `${disposition()}\r\nContent-Transfer-Encoding: BINARY`) + last,
      ['one'],
    ],
    [
      'a shorter boundary in a file',
      `${part('--\r\n--\r\n').replaceAll('--b', '--bb')}--bb--`,
      ['--\r\n--\r\n'],
      'bb',
    ],
    ['the boundary within a line', `${part('one --b--')}${last}`, ['one --b--']],
    ['NUL in a filename', part('one', disposition('; filename="a\0.txt"')) + last, ['one']],
    [
      'every character of a boundary',
      `${part('one')}${last}`.replaceAll('--b', "--a Z9'()+_,-./:=?"),
      ['one'],
      '"a Z9\'()+_,-./:=?"',
    ],
    [
      'a picture without a filename',
      part('one', `${disposition('')}\r\nContent-Type: image/png`) + part('two') + last,
      ['one', 'two'],
    ],
    [
      'a form as a file',
      part('--c\r\n\r\n--c--', `${disposition()}\r\nContent-Type: multipart/mixed; boundary=c`) + last,
      ['--c\r\n\r\n--c--'],
    ],
  ])('%s', async (_, body, contents, boundary = 'b') => {
    const response = await sendForm(server, Buffer.from(body, 'latin1'), typeOf(boundary))
    expect(response.status).toBe(201)
    const items = contents.length > 1 ? await readStoredItems(response) : [await readItem(response)]
    expect(await Promise.all(items.map(async ({ url }) => (await fetch(url)).text()))).toEqual(contents)
  })
})
