import { resolve } from 'node:path'
import { styleText } from 'node:util'
import type { Server } from '../server/start-server.ts'

/** The text that a start prints on standard output: the URL, the token of the first start, and the next steps. */
export function banner(server: Server, data: string): string {
  const { baseUrl, hasGallery, firstToken } = server
  const paint = (format: Parameters<typeof styleText>[0], text: string) =>
    styleText(format, text, { stream: process.stdout })
  const heading = (text: string) => paint('bold', text)
  const command = (text: string) => `  ${paint('cyan', text)}`
  const authorization = `-H 'Authorization: Bearer ${firstToken}'`

  const opening = [
    `${heading('Mediabucket is ready at')} ${paint(['bold', 'green', 'underline'], baseUrl)}`,
    ...(hasGallery ? ['Open it in a browser to view, upload and delete files with a token.'] : []),
    paint('dim', `Files are stored in ${resolve(data)}. Ctrl-C stops the service.`),
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
