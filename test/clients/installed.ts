import { installClients } from './install.ts'

// Vitest's set-up of each file of test/clients.
await installClients()
