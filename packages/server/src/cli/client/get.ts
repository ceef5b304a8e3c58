import { parse } from '../arguments.ts'
import { UsageError } from '../command.ts'
import { clientCommand } from './client-command.ts'
import { downloadFile } from './download-file.ts'
import { bytesReference } from './item-reference.ts'

export const get = clientCommand({
  help: `Usage: mediabucket get ID|URL [-o FILE]

Writes the bytes to standard output, or to a file. The token is sent to the service only, never to a URL of another
server; files of a private bucket that a media host serves are requested by a signed URL.

Options:
  -o, --output FILE  Write to FILE, which is created or replaced when the download is complete. If it is a link, its target
                     is replaced; a FIFO or a device is written to. - is standard output.`,

  read(args) {
    const { values, positionals } = parse('get', {
      args: [...args],
      allowPositionals: true,
      options: { output: { type: 'string', short: 'o' } },
    })
    const [reference, ...more] = positionals
    if (reference === undefined || more.length > 0) throw new UsageError('get takes one ID or URL')
    if (values.output === '') throw new UsageError('-o takes the path of a file')
    return { reference: bytesReference(reference), file: values.output ?? '-' }
  },

  target: ({ reference }) => (URL.canParse(reference) ? reference : null),

  async run({ reference, file }, { client, output, interrupted }) {
    const signal = AbortSignal.any([interrupted, output.closed])
    const write = file === '-' ? null : await downloadFile(file)
    const { body } = await client.get(reference, { signal })
    const bytes = body ?? []
    if (write !== null) return await write(bytes, signal)
    for await (const chunk of bytes) await output.bytes(chunk)
  },
})
