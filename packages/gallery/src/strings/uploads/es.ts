import { formatCount } from '../locale.ts'
import type { uploads as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

/** The texts of uploads and of their list. */
export const uploads: typeof english = {
  label: 'Subidas',
  sending: (done: number, all: number) => `Subiendo: ${formatCount(done)} de ${files(all)}`,
  waitingForServer: 'Esperando al servidor',
  paused: (left: number) => `${files(left)} en pausa`,
  finished: (count: number) => (count === 1 ? '1 archivo subido' : `${files(count)} subidos`),
  failed: (count: number) => `${files(count)} sin subir`,
  partly: (done: number, all: number) => `${formatCount(done)} de ${files(all)} subidos`,
  toChooseAgain: (count: number) => `${files(count)} por elegir de nuevo`,
  nothing: 'Nada que subir',
  reading: (count: number) =>
    count === 0 ? 'Leyendo las carpetas…' : `Leyendo las carpetas: ${files(count)} hasta ahora`,
  partOf: (done: string, all: string) => `${done} de ${all}`,
  speed: (size: string) => `${size}/s`,
  timeLeft: (time: string) => `quedan ${time}`,
  fewSeconds: 'unos segundos',
  seconds: (count: number) => `${count} s`,
  minutes: (count: number) => `${count} min`,
  hours: (count: number, minutes: number) => `${count} h ${minutes} min`,
  notDone: (failed: number) => `${formatCount(failed)} sin subir`,
  continuesLater:
    'Puedes cerrar esta página. Las subidas continúan cuando vuelvas a abrirla en este navegador.',
  keepOpen: 'Mantén esta página abierta hasta que terminen las subidas.',
  systemFiles: (count: number) =>
    `${count === 1 ? '1 archivo del sistema omitido' : `${formatCount(count)} archivos del sistema omitidos`} (como .DS_Store y Thumbs.db)`,
  emptyFolders: (count: number) =>
    count === 1 ? '1 carpeta vacía omitida' : `${formatCount(count)} carpetas vacías omitidas`,
  unreadableFolders: (count: number) =>
    count === 1
      ? 'No se pudo leer 1 carpeta. No se subió nada de ella.'
      : `No se pudieron leer ${formatCount(count)} carpetas. No se subió nada de ellas.`,
  duplicates: (count: number) =>
    count === 1
      ? '1 archivo con el mismo nombre, tamaño y fecha ya está en la lista. No se añadió de nuevo.'
      : `${files(count)} con el mismo nombre, tamaño y fecha ya están en la lista. No se añadieron de nuevo.`,
  addAgain: 'Añadir de nuevo',
  copy: 'Copiar enlaces',
  retryFailed: 'Reintentar los fallidos',
  showMore: (count: number) => `Mostrar ${formatCount(count)} más`,
  overall: 'Todas las subidas',
  uploadOf: (name: string) => `Subida de ${name}`,
  progress: (sent: string, size: string) => `${sent} de ${size}`,
  waiting: 'En espera',
  inProgress: 'Subiendo',
  pausedAll: 'En pausa',
  pausedAt: (sent: string, size: string) => `En pausa: ${sent} de ${size}`,
  done: 'Subido',
  chooseAgain: 'Elige este archivo de nuevo para continuar',
  pause: (name: string) => `Pausar ${name}`,
  resume: (name: string) => `Reanudar ${name}`,
  retry: (name: string) => `Reintentar ${name}`,
  cancel: (name: string) => `Cancelar ${name}`,
  pauseAll: 'Pausar todo',
  resumeAll: 'Reanudar todo',
  collapse: 'Mostrar menos',
  expand: 'Mostrar todas las subidas',
  close: 'Cerrar la lista de subidas',
  cancelAll: 'Cancelar todo',
  more: (count: number) => `y ${formatCount(count)} más`,
  continued: (count: number) => `Continúan ${files(count)} de tu última visita.`,
  unknown:
    'El servidor rechazó este archivo sin dar un motivo. Inténtalo de nuevo; si se repite, mira el registro del servidor.',
  unreadable: 'No se pudo leer este archivo: se movió o eliminó, o no tienes permiso para leerlo.',
  changed: 'Este archivo se cambió, movió o eliminó después de elegirlo. Elígelo de nuevo.',
  tooLarge: 'Este archivo es mayor de lo que permite el servidor.',
  noRoom: (limit: string) => `Este archivo no cabe: el bucket está limitado a ${limit}.`,
  tooLargeFor: (limit: string) =>
    `Este archivo es demasiado grande: el servidor permite hasta ${limit} por archivo.`,
}
