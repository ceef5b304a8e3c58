import { resolve } from 'node:path'
import { styleText } from 'node:util'
import type { Server } from '../server/start-server.ts'

/** What the start prints on standard output: where the service is, its first token once, and what to do next. */
export function banner(server: Server, data: string): string {
  const { baseUrl, hasGallery, firstToken } = server
  const paint = (format: Parameters<typeof styleText>[0], text: string) =>
    styleText(format, text, { stream: process.stdout })
  const heading = (text: string) => paint('bold', text)
  const command = (text: string) => `  ${paint('cyan', text)}`
  const authorization = `-H 'Authorization: Bearer ${firstToken}'`

  const opening = [
    `${heading('Mediabucket is ready at')} ${paint(['bold', 'green', 'underline'], baseUrl)}`,
    ...(hasGallery ? ['Open it in a browser to see, add and delete files with a token.'] : []),
    paint('dim', `Files are stored in ${resolve(data)}. Ctrl-C stops the service.`),
  ]
  const first = [
    heading('The bucket "default" is made. This is its token; it is shown this once:'),
    '',
    `  ${paint(['bold', 'yellow'], firstToken ?? '')}`,
    '',
    'Upload a file:',
    '',
    command(`curl ${authorization} -F file=@README.md ${baseUrl}/api/media`),
    '',
    'List what is there:',
    '',
    command(`curl ${authorization} ${baseUrl}/api/media`),
  ]
  const later = [`To make another token: ${paint('cyan', 'npx mediabucket token create --bucket default')}`]
  return ['', ...opening, '', ...(firstToken === null ? later : first), ''].join('\n')
}
