import { join, resolve } from 'node:path'
import { styleText } from 'node:util'
import type { Config } from '../config/config.ts'
import { withoutPassword } from '../core/database-urls.ts'
import { locationText } from '../core/s3-location.ts'
import type { Server } from '../server/start-server.ts'

type Places = Pick<Config, 'data' | 'databaseUrl' | 'blobsUrl'>

/** Where the rows and the files are, without passwords. */
export const placesOf = ({ data, databaseUrl, blobsUrl }: Places) => ({
  catalog: databaseUrl === null ? join(resolve(data), 'catalog.db') : withoutPassword(databaseUrl),
  files: blobsUrl === null ? resolve(data) : locationText(blobsUrl),
})

/** The text that a start prints on standard output: the URL, the token of the first start, and the next steps. */
export function banner(server: Server, config: Places): string {
  const { catalog, files } = placesOf(config)
  const { baseUrl, hasGallery, firstToken } = server
  const paint = (format: Parameters<typeof styleText>[0], text: string) =>
    styleText(format, text, { stream: process.stdout })
  const heading = (text: string) => paint('bold', text)
  const command = (text: string) => `  ${paint('cyan', text)}`
  const authorization = `-H 'Authorization: Bearer ${firstToken}'`

  const opening = [
    `${heading('Mediabucket is ready at')} ${paint(['bold', 'green', 'underline'], baseUrl)}`,
    ...(hasGallery ? ['Open it in a browser to view, upload and delete files with a token.'] : []),
    paint('dim', `The catalog is ${catalog}.`),
    paint('dim', `Files are stored in ${files}. Ctrl-C stops the service.`),
  ]
  const first = [
    heading('Created the bucket "default". Its token is shown only now:'),
    '',
    `  ${paint(['bold', 'yellow'], firstToken ?? '')}`,
    '',
    'Upload a file:',
    '',
    command(`curl ${authorization} -F file=@README.md ${baseUrl}/api/media`),
    '',
    'List the files:',
    '',
    command(`curl ${authorization} ${baseUrl}/api/media`),
  ]
  const later = [`To create another token: ${paint('cyan', 'npx mediabucket token create --bucket default')}`]
  return ['', ...opening, '', ...(firstToken === null ? later : first), ''].join('\n')
}
