import { expect, test } from 'vitest'
import { localName } from './local-names.ts'

test.each<[string | null, string]>([
  ['photo.jpg', 'photo.jpg'],
  ['écran à 写真.png', 'écran à 写真.png'],
  ['../../etc/passwd', '_._.._etc_passwd'],
  ['..', '__'],
  ['.ssh', '_ssh'],
  ['a\u001b[2J\u202e\n.txt', 'a_[2J__.txt'],
  ['C:\\x', 'C__x'],
  ['con', '_con'],
  ['CON.txt', '_CON.txt'],
  ['Aux .tar.gz', '_Aux .tar.gz'],
  ['LPT².log', '_LPT².log'],
  ['CONIN$', '_CONIN$'],
  ['console.txt', 'console.txt'],
  ['ends with a dot. ', 'ends with a dot_'],
  ['', 'id1'],
  [null, 'id1.webp'],
  [`${'é'.repeat(200)}.jpeg`, `${'é'.repeat(117)}.jpeg`],
])('%j becomes the name %j', (filename, name) => {
  expect(localName({ id: 'id1', url: 'http://h.example/media/id1.webp', filename })).toBe(name)
})
