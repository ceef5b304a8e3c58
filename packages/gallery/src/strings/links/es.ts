import { formatCount } from '../locale.ts'
import type { links as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

export const links: typeof english = {
  defaultTitle: 'Enviar archivos',
  checking: 'Abriendo el enlace…',
  choosePhotos: 'Elegir fotos',
  choosePhotosAndVideos: 'Elegir fotos y vídeos',
  chooseFiles: 'Elegir archivos',
  takePhoto: 'Hacer una foto',
  orDrop: 'o suéltalos aquí',
  drop: 'Suelta los archivos para enviarlos',
  limits: 'Qué puedes enviar',
  chosen: 'Archivos elegidos',
  chosenCount: (count, size) => `${files(count)} ${count === 1 ? 'elegido' : 'elegidos'}, ${size}`,
  send: (count) => `Enviar ${files(count)}`,
  progress: 'Tus archivos',
  thanks: (count) =>
    count === 1
      ? '¡Gracias! Tu archivo ha llegado.'
      : `¡Gracias! Han llegado los ${formatCount(count)} archivos.`,
  arrived: (count) => (count === 1 ? 'Ha llegado 1 archivo' : `Han llegado ${files(count)}`),
  more: 'Puedes cerrar esta página o enviar más.',
  canClose: 'Puedes cerrar esta página.',
  continuesLater:
    'Puedes cerrar esta página. Las subidas continúan cuando vuelvas a abrir el enlace en este navegador.',
  complete: 'Este enlace ya ha recibido todos sus archivos',
  completeHint: 'Para enviar más, pregunta a quien te dio el enlace.',
  invalid: 'Este enlace no funciona',
  invalidHint: 'Ha caducado, se ha revocado o está incompleto. Pide uno nuevo a quien te lo dio.',
  unreachable: 'No se puede acceder al servicio',
  unreachableHint: 'Comprueba tu conexión. La página lo intenta de nuevo por sí sola.',
  remove: (name) => `Quitar: ${name}`,
  retry: (name) => `Reintentar: ${name}`,
  upTo: (count) => `Hasta ${files(count)}`,
  left: (count, of) => `Quedan ${formatCount(count)} de ${files(of)}`,
  total: (size) => `${size} en total`,
  leftOfTotal: (size, of) => `Quedan ${size} de ${of}`,
  each: (size) => `Como máximo ${size} por archivo`,
  onlyKinds: (kinds) => `Solo ${kinds}`,
  kinds: { image: 'imágenes', video: 'vídeos', audio: 'audio', text: 'textos', application: 'documentos' },
  until: (time) => `El enlace funciona hasta el ${time}`,
  expireAfter: (days) =>
    `Los archivos se eliminan después de ${days === 1 ? '1 día' : `${formatCount(days)} días`}`,
  noneLeft: 'Este enlace no acepta más archivos.',
  tooMuch: 'Es más de lo que el enlace acepta todavía.',
  tooLarge: (limit) => `Este archivo es demasiado grande: el enlace permite hasta ${limit} por archivo.`,
  wrongType: (kinds) => `Este enlace solo acepta ${kinds}.`,
  askAbout: 'Quien abre el enlace envía archivos a este bucket. No ve nada de él y no necesita cuenta.',
  moreFields: 'Más',
  title: 'Título',
  note: 'Nota',
  noteHint: 'Se muestra en la página, por ejemplo para qué son los archivos',
  howMany: 'Cuántos archivos',
  anyNumber: 'Sin límite',
  which: 'Qué archivos',
  any: 'Cualquier archivo',
  pictures: 'Imágenes',
  picturesAndVideos: 'Imágenes y vídeos',
  documents: 'Documentos PDF',
  maxSize: 'Archivo más grande',
  maxTotal: 'Todos los archivos juntos',
  noLimit: 'Sin límite',
  deleteAfter: 'Días hasta que se borran los archivos',
  never: 'Nunca',
  labels: 'Etiquetas de los archivos',
  validFor: 'El enlace funciona durante',
  create: 'Crear el enlace',
  created: 'El enlace',
  createdAbout:
    'Envíalo a quienes deban subir archivos, o deja que escaneen el código. Solo se muestra ahora.',
  copy: 'Copiar el enlace',
  code: 'Código QR del enlace',
  badge: 'Solo subidas',
  received: (count, size) =>
    count === 0
      ? 'Aún no ha llegado nada'
      : `${count === 1 ? 'Ha llegado' : 'Han llegado'} ${files(count)}, ${size}`,
}
